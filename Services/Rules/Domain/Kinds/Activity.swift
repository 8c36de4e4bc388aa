import FoundationEssentials
import PushProtocol

/// What a rule says to a Live Activity: its part of `aps`, in Apple's own names (`push-protocols` A.7).
struct Activity: Hashable, Sendable {
    enum Event: String, Hashable, Sendable, CaseIterable { case start, update, end }

    var event: Event
    /// `content-state`: what the activity shows from now on. Wanted of each, and only an end may do without.
    var state: DataTemplate?
    /// Of a start: the type that the app's code has for it, and what of it never changes.
    var attributesType: String?
    var attributes: DataTemplate?
    /// From when on what it shows is marked as old.
    var staleDate: Moment?
    /// Of an end: when it leaves the screen; absent: within four hours.
    var dismissalDate: Moment?
    /// Which of several activities is on top: the highest.
    var relevance: DataTemplate?
    /// Of a start: how the app is to be told what changes, by a token of its own or by a broadcast channel.
    var asksForToken = false
    var channel: Template?

    /// A moment that follows from the event.
    struct Moment: Hashable, Sendable {
        /// The path of a time; absent: when the event happened.
        var at: String?
        /// Negative: before it.
        var offset: Duration = .zero

        static let expectation = "a time (2026-03-31T09:00:00Z), or one in Unix seconds"
    }
}

extension Activity {
    /// The members of `aps` for one event.
    ///
    /// - Parameter sound: of the alert; an activity has it there and nowhere else.
    func render(_ scope: Scope, sound: String?) throws(PlacedProblem) -> [String: JSONValue] {
        let place = "say.live-activity"
        var aps: [String: JSONValue] = [
            "event": .string(event.rawValue),
            // By the upstream's clock: the device leaves out an update that was overtaken.
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

    /// Every tag in it.
    var tags: [TemplateTag] {
        [state, attributes, relevance].compactMap(\.self).flatMap(\.tags) + (channel?.tags ?? [])
    }
}

extension Activity.Moment {
    /// Unix seconds.
    func seconds(_ scope: Scope, _ place: String) throws(PlacedProblem) -> Int64 {
        guard let at else { return (scope.moment + offset).seconds }
        guard let value = scope[at] else { throw PlacedProblem("\(place).at", .missing(path: at)) }
        // Milliseconds are the usual mistake.
        if let seconds = value.int, (0..<100_000_000_000).contains(seconds) {
            return seconds + offset.components.seconds
        }
        guard case .moment(let moment)? = WrittenDate(value) else {
            throw PlacedProblem("\(place).at", .unsuitable(path: at, expected: Activity.Moment.expectation))
        }
        return (moment + offset).seconds
    }
}
