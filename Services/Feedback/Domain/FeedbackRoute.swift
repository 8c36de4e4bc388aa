import PushProtocol

/// One app in one environment of a provider. Each route has its own evaluation and guard.
struct FeedbackRoute: Hashable, Comparable, Sendable {
    var app: AppID
    var origin: Outcomes.Origin
    /// `nil` if the outcome does not name the environment.
    var environment: ProviderEnvironment?

    /// The environment in tables and metrics; `unknown` for `nil`.
    var environmentLabel: String { environment?.rawValue ?? "unknown" }

    static func < (a: FeedbackRoute, b: FeedbackRoute) -> Bool { a.words.lexicographicallyPrecedes(b.words) }

    private var words: [String] { [app.rawValue, origin.rawValue, environmentLabel] }
}

extension FeedbackRoute: CustomStringConvertible {
    var description: String { "\(app)/\(origin.rawValue)/\(environmentLabel)" }
}
