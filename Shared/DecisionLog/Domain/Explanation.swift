package import FoundationEssentials

/// The whole story of one event: for each user, what was decided and why, and what the providers said.
package struct Explanation: Hashable, Sendable {
    package var app: String
    package var source: String
    package var id: String
    package var type: String
    package var arrivedAt: Date
    package var ruleSet: UUID
    /// By rule: what more than a thousand people are being told, as far as it has come; on the first page only.
    package var crowds: [Crowd]
    /// By user, rule and notification; those of one page.
    package var stories: [Story]
    /// The last of these, if there are more: what the next page comes after.
    package var next: UUID?

    /// A statement to more people than are decided about at once, and not all of them yet.
    package struct Crowd: Hashable, Sendable {
        package var rule: String
        /// How many people were decided about so far, in the order of their ids.
        package var decided: Int
        /// How many may be left, at the most: who is in several groups counts several times, and so does who is excepted.
        /// `nil` when that was not noted, by a version of rules before this one.
        package var leftAtMost: Int?
    }

    /// One notification to one user.
    package struct Story: Hashable, Sendable {
        package var notification: UUID
        package var user: String
        package var rule: String
        /// From the first to the last: what is held is decided about again.
        package var decisions: [Decision]
        package var outcomes: [Outcome]
        /// `nil` when the inbox does not have it.
        package var inbox: Inbox?
        /// When what is held is judged again.
        package var dueAt: Date?
        package var receipts: [Receipt]
    }

    package struct Decision: Hashable, Sendable {
        package var at: Date
        package var answer: String
        package var reason: String
        package var until: Date?
    }

    package struct Outcome: Hashable, Sendable {
        package var at: Date
        package var origin: String
        package var device: UUID?
        package var disposition: String
        package var reason: String?
    }

    package enum Inbox: Hashable, Sendable {
        case unread
        case read(Date)
    }

    /// What the person did with it: `opened` or `dismissed`.
    package struct Receipt: Hashable, Sendable {
        package var at: Date
        package var what: String
    }
}

extension Explanation {
    /// What each reason of a decision means, for a person.
    package static let meanings: KeyValuePairs = [
        "wanted": "nothing speaks against it",
        "critical": "the rule file says that nobody can switch this off",
        "noiseless": "it makes no noise, so nobody was asked",
        "expired": "its expiration had passed",
        "switched-off": "this person has switched everything off",
        "channel-off": "this person wants no pushes",
        "type-off": "this person does not want this type, or has not asked for one that is off by default",
        "type-channel-off": "this person wants this type, but not as a push",
        "muted": "this person has muted what it is about",
        "present": "the app was open",
        "viewing": "this person was looking at that very thread",
        "capped": "this person has been pushed as often as the cap allows",
        "quiet-hours": "it was this person's quiet hours",
        "held-too-long": "it was held as long as its rule allows",
        "held-too-often": "it was still quiet hours when they should have ended, for the third time",
        "critical-storm": "more critical notifications came than can be meant: look at the upstream",
        "audience": "it is told to all of an audience: nobody was asked",
        "broadcast": "it is told to all who follow something at the provider: nobody was asked",
        "scheduled": "it is for a later moment, which the event names",
        "gathered": "it is summed up with others",
        "summed-up": "it was said in a summary, whose own story stands with the latest event in it",
        "too-late": "the moment that it was to be said before was over",
        "done": "an event said that it need not be told any more",
        "replaced": "a later event about the same thing has taken its place",
        "repeated": "the same was said to this person not long ago",
        "unsendable": "no message can carry it: it is too large, or nests too deep",
        "rule-gone": "the rule file has no such rule any more",
    ]

    /// The reasons of all decisions in it.
    package var reasons: Set<String> { Set(stories.flatMap(\.decisions).map(\.reason)) }
}
