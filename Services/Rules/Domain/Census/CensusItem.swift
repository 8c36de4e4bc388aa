import FoundationEssentials
import PushProtocol

/// A notification that the decision log alone does not place: a decided push without an outcome, or one with a report
/// against its token, which feedback must have too.
struct CensusItem: Hashable, Sendable {
    var notification: UUID
    var app: AppID
    /// The event's id.
    var event: String
    var decidedAt: Timestamp
    /// The latest report against its token; `nil` without one.
    var evidenceAt: Timestamp?
    /// The state by the decision log; `nil` without an outcome.
    var state: CensusState?
    /// Whether rules still has to publish it: it is released or a step of a fan-out, and not confirmed.
    var isUnpublished = false
    var isDeadRow = false
}

struct CensusTrail: Hashable, Sendable {
    /// The last report of a service about a notification.
    enum Mark: Hashable, Sendable {
        /// The service published the results, at the latest at this time.
        case settled(Timestamp)
        /// It waits in a retry level until this time.
        case retried(until: Timestamp)
        case deadLettered
    }

    private var marks: [String: Mark] = [:]

    subscript(_ service: String) -> Mark? {
        get { marks[service] }
        set { marks[service] = newValue }
    }

    /// The mark that goes furthest, of several services of one stage.
    func mark(of services: [String]) -> Mark? {
        let marks = services.compactMap { self.marks[$0] }
        return marks.first { if case .settled = $0 { true } else { false } }
            ?? marks.first { if case .retried = $0 { true } else { false } } ?? marks.first
    }
}

/// A part of the way of a notification from rules to its outcome.
enum CensusStage: Int, Hashable, Sendable, CaseIterable, Comparable {
    case registry, sender, outcomes, feedback

    static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    static let senders = Provider.allCases.map { "\($0.rawValue)-sender" }

    /// The services that take the notification at the end of this part.
    var services: [String] {
        switch self {
        case .registry: ["token-registry"]
        case .sender: Self.senders
        case .outcomes: ["rules"]
        case .feedback: ["feedback"]
        }
    }

    var waiting: CensusState {
        switch self {
        case .registry: .atRegistry
        case .sender: .atSender
        case .outcomes, .feedback: .atOutcomes
        }
    }

    var missing: CensusState {
        switch self {
        case .registry: .missingRegistry
        case .sender: .missingSender
        case .outcomes: .missingOutcomes
        case .feedback: .missingFeedback
        }
    }

    /// The places where a notification of `app` can be in this part, in order.
    func passages(of app: AppID) -> [[CensusPassage]] {
        switch self {
        case .registry:
            // A decided event may be redelivered to rules, which then publishes its pushes again.
            [
                [CensusPassage(queues: [.rulesEvents, .rulesAppEvents(app)], service: "rules")],
                [
                    CensusPassage(
                        queues: Lane.allCases.flatMap {
                            [.registryNotifications($0), .registryAppNotifications($0, app)]
                        },
                        service: "token-registry")
                ],
            ]
        case .sender:
            [
                [CensusPassage(queues: [], service: "token-registry")],
                Provider.allCases.map { provider in
                    CensusPassage(
                        queues: Lane.allCases.map { .senderPushes(provider, $0, app) },
                        service: "\(provider.rawValue)-sender")
                },
            ]
        case .outcomes:
            [
                Self.senders.map { CensusPassage(queues: [], service: $0) },
                [CensusPassage(queues: [.rulesOutcomes], service: "rules")],
            ]
        case .feedback:
            [
                Self.senders.map { CensusPassage(queues: [], service: $0) },
                [CensusPassage(queues: [.feedbackOutcomes], service: "feedback")],
            ]
        }
    }
}

/// The queues that a message waits in, and then the service that takes it.
struct CensusPassage: Hashable, Sendable {
    var queues: [WorkQueue]
    var service: String
}
