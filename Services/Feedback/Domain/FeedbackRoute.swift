import PushProtocol

/// One app on one of a provider's environments: what is judged, and guarded, as one.
struct FeedbackRoute: Hashable, Comparable, Sendable {
    var app: AppID
    var origin: Outcomes.Origin
    /// Absent where nobody said in which environment the push was refused.
    var environment: ProviderEnvironment?

    /// The environment in the tables and in metrics.
    var environmentWord: String { environment?.rawValue ?? "unknown" }

    static func < (a: FeedbackRoute, b: FeedbackRoute) -> Bool { a.words.lexicographicallyPrecedes(b.words) }

    private var words: [String] { [app.rawValue, origin.rawValue, environmentWord] }
}

extension FeedbackRoute: CustomStringConvertible {
    var description: String { "\(app)/\(origin.rawValue)/\(environmentWord)" }
}
