import FoundationEssentials
import PushProtocol

/// The members of `aps` for a Live Activity, under Apple's names (`Shared/Providers/ProviderFacts.md`, A.7).
struct Activity: Hashable, Sendable {
    enum Event: String, Hashable, Sendable, CaseIterable { case start, update, end }

    package var event: Event
    /// `content-state`: the new content. Required, except for an end.
    package var state: DataTemplate?
    /// For a start: the type of the activity's attributes in the app, and the attributes, which never change.
    var attributesType: String?
    var attributes: DataTemplate?
    /// The time from which the content counts as outdated.
    var staleDate: Moment?
    /// For an end: the time at which the activity leaves the screen; `nil`: within four hours.
    var dismissalDate: Moment?
    /// The order among several activities: the highest one is on top.
    var relevance: DataTemplate?
    /// For a start: the source of later updates, a token of the activity (`input-push-token`) or a broadcast channel.
    var asksForToken = false
    package var channel: Template?

    struct Moment: Hashable, Sendable {
        /// The path of a time; `nil`: the event's time.
        package var at: String?
        /// Negative: before that time.
        package var offset: Duration = .zero

        static let expectation = "a time (2026-03-31T09:00:00Z), or one in Unix seconds"
    }
}

extension Activity {
    /// Returns the members of `aps` for one event.
    ///
    /// - Parameter sound: the alert's sound. Live Activities have no sound outside of `alert`.
    func render(_ scope: Scope, sound: String?) throws(PlacedProblem) -> [String: JSONValue] {
        let place = "say.live-activity"
        var aps: [String: JSONValue] = [
            "event": .string(event.rawValue),
            // The event's time. The device ignores an update older than the newest one (ActivityKit).
            "timestamp": .int(scope.moment.seconds),
        ]
        aps["content-state"] = try state?.object(scope, "\(place).content-state")
        aps["attributes-type"] = attributesType.map(JSONValue.string)
        aps["attributes"] = try attributes?.object(scope, "\(place).attributes")
        if let staleDate { aps["stale-date"] = .int(try staleDate.seconds(scope, "\(place).stale-date")) }
        if let dismissalDate {
            aps["dismissal-date"] = .int(try dismissalDate.seconds(scope, "\(place).dismissal-date"))
        }
        if let relevance = try relevance?.render(scope, place: "\(place).relevance-score") {
            guard relevance.number != nil else {
                let path = self.relevance?.tags.first?.path ?? "the relevance score"
                throw PlacedProblem("\(place).relevance-score", .unsuitable(path: path, expected: "a number"))
            }
            aps["relevance-score"] = relevance
        }
        if asksForToken { aps["input-push-token"] = 1 }
        if let channel { aps["input-push-channel"] = .string(try id(of: channel, scope, place)) }
        if let sound { aps["alert"] = ["sound": .string(sound)] }
        return aps
    }

    private func id(of channel: Template, _ scope: Scope, _ place: String) throws(PlacedProblem) -> String {
        try channel.render(
            scope, place: "\(place).input-push-channel", "the channel", expected: ChannelID.rule,
            as: ChannelID.init(rawValue:)
        ).rawValue
    }

    var tags: [TemplateTag] {
        [state, attributes, relevance].compactMap(\.self).flatMap(\.tags) + (channel?.tags ?? [])
    }
}

extension Activity.Moment {
    /// Returns the time in Unix seconds.
    package func seconds(_ scope: Scope, _ place: String) throws(PlacedProblem) -> Int64 {
        guard let at else { return (scope.moment + offset).seconds }
        guard let value = scope[at] else { throw PlacedProblem("\(place).at", .missing(path: at)) }
        // Rejects milliseconds, which are a common mistake.
        if let seconds = value.int, (0..<100_000_000_000).contains(seconds) {
            return seconds + offset.components.seconds
        }
        guard case .moment(let moment)? = WrittenDate(value) else {
            throw PlacedProblem("\(place).at", .unsuitable(path: at, expected: Activity.Moment.expectation))
        }
        return (moment + offset).seconds
    }
}
