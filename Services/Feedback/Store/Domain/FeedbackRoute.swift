package import PushProtocol

/// One app in one environment of a provider. Each route has its own evaluation and guard.
package struct FeedbackRoute: Hashable, Comparable, Sendable {
    package var app: AppID
    package var origin: Outcomes.Origin
    /// `nil` if the outcome does not name the environment.
    package var environment: ProviderEnvironment?

    /// The environment in tables and metrics; `unknown` for `nil`.
    package var environmentLabel: String { environment?.rawValue ?? "unknown" }

    package static func < (a: FeedbackRoute, b: FeedbackRoute) -> Bool { a.words.lexicographicallyPrecedes(b.words) }

    private var words: [String] { [app.rawValue, origin.rawValue, environmentLabel] }
}

extension FeedbackRoute: CustomStringConvertible {
    package var description: String { "\(app)/\(origin.rawValue)/\(environmentLabel)" }
}
