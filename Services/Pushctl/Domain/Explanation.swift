import FoundationEssentials
import PushProtocol

/// The whole story of one event: for each user, what was decided and why, and what the providers said.
struct Explanation: Hashable, Sendable {
    var app: String
    var source: String
    var id: String
    var type: String
    var arrivedAt: Date
    var ruleSet: UUID
    var stories: [Story]

    /// One notification to one user.
    struct Story: Hashable, Sendable {
        var notification: UUID
        var user: String
        var rule: String
        var decisions: [Decision]
        var outcomes: [Outcome]
        /// `nil` when the inbox does not have it.
        var inbox: Inbox?
        /// When what is held is judged again.
        var dueAt: Date?
    }

    struct Decision: Hashable, Sendable {
        var at: Date
        var answer: String
        var reason: String
        var until: Date?
    }

    struct Outcome: Hashable, Sendable {
        var at: Date
        var origin: String
        var device: UUID?
        var disposition: String
        var reason: String?
    }

    enum Inbox: Hashable, Sendable {
        case unread
        case read(Date)
    }
}

extension Explanation {
    /// What each reason of a decision means, for a person.
    private static let meanings: KeyValuePairs = [
        "wanted": "nothing speaks against it",
        "critical": "the rule file says that nobody can switch this off",
        "noiseless": "it makes no noise, so nobody was asked",
        "expired": "its expiration had passed",
        "switched-off": "this person has switched everything off",
        "channel-off": "this person wants no pushes",
        "type-off": "this person does not want this type, or has not asked for one that is off by default",
        "muted": "this person has muted what it is about",
        "present": "the app was open",
        "viewing": "this person was looking at that very thread",
        "capped": "this person has been pushed as often as the cap allows",
        "quiet-hours": "it was this person's quiet hours",
        "held-too-long": "it was held as long as its rule allows",
        "held-too-often": "it was still quiet hours when they should have ended, for the third time",
        "critical-storm": "more critical notifications came than can be meant: look at the upstream",
        "audience": "it is told to all of an audience: nobody was asked",
        "scheduled": "it is for a later moment, which the event names",
        "gathered": "it is summed up with others",
        "summed-up": "it was said in a summary, whose own story stands with the latest event in it",
        "too-late": "the moment that it was to be said before was over",
        "done": "an event said that it need not be told any more",
        "replaced": "a later event about the same thing has taken its place",
        "repeated": "the same was said to this person not long ago",
        "rule-gone": "the rule file has no such rule any more",
    ]

    /// One line for the event, and for each user some for decisions, outcomes and inbox; then what the reasons mean.
    var lines: [String] {
        var lines = [
            "\(app)  \(type)  \(id)  from \(source)  arrived \(Self.time(arrivedAt))  rules \(ruleSet.uuidString.lowercased())"
        ]
        if stories.isEmpty { lines.append("  nobody: no rule matches, or it names nobody who is left to tell") }
        for story in stories {
            lines.append("  \(story.user)  \(story.rule)  \(story.notification.uuidString.lowercased())")
            lines += story.lines.map { "    \($0)" }
        }
        let met = Set(stories.flatMap(\.decisions).map(\.reason))
        return lines + Self.meanings.filter { met.contains($0.key) }.map { "(\($0.key)) \($0.value)" }
    }

    static func time(_ date: Date) -> String { RFC3339.string(from: date) }
}

extension Explanation.Story {
    fileprivate var lines: [String] {
        var lines = decisions.map { decision in
            let until = decision.until.map { " until \(Explanation.time($0))" } ?? ""
            return "\(Explanation.time(decision.at))  \(decision.answer)\(until)  (\(decision.reason))"
        }
        if let dueAt { lines.append("it waits; it is judged again at \(Explanation.time(dueAt))") }
        lines += outcomes.map { outcome in
            let device = outcome.device.map { "  \($0.uuidString.lowercased())" } ?? ""
            let reason = outcome.reason.map { "  \($0)" } ?? ""
            return "\(Explanation.time(outcome.at))  \(outcome.origin)\(device)  \(outcome.disposition)\(reason)"
        }
        if outcomes.isEmpty, decisions.last?.answer.hasPrefix("push") == true {
            lines.append("no answer yet from the registry or a provider")
        }
        switch inbox {
        case .unread: lines.append("in the inbox, unread")
        case .read(let at): lines.append("in the inbox, read \(Explanation.time(at))")
        case nil: break
        }
        return lines
    }
}
