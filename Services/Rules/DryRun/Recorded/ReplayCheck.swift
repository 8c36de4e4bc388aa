package import FoundationEssentials
import PushProtocol
package import RuleEngine
import RuleLanguage

/// Compares the decisions in the decision log with those that the same rules make of the recorded inputs.
package struct ReplayCheck: Sendable {
    /// A notification and the number of the decision on it.
    package struct Key: Hashable, Sendable {
        package var notification: UUID
        package var step: Int

        package init(notification: UUID, step: Int) {
            self.notification = notification
            self.step = step
        }
    }

    /// The decisions that are equal in the log.
    package private(set) var reproduced = 0
    /// The decisions that differ, and recordings with another number of decisions.
    package private(set) var differing: [String] = []
    /// The decisions that the log does not have any more.
    package private(set) var unlogged = 0
    /// The decisions that cannot be made again, by reason.
    package private(set) var obstacles: [ReplayObstacle: Int] = [:]

    private var open: [Key: DecisionRecord] = [:]

    package init() {}

    /// Makes the decisions of a recording again.
    mutating func replay(_ recording: Recording, by ruleSets: RuleSets, _ event: (Recording) -> StoredEvent?) {
        do throws(ReplayObstacle) {
            let decided = try recording.replayed(by: ruleSets) { _ in event(recording) }
            for record in decided { open[Key(notification: record.notification, step: record.step)] = record }
            if decided.count != recording.count {
                differing.append(
                    "\(recording.kind) of \(recording.event.uuidString.lowercased()): "
                        + "\(decided.count) decisions, recorded were \(recording.count)")
            }
        } catch {
            obstacles[error, default: 0] += recording.count
        }
    }

    /// The decisions to compare with the log.
    var openKeys: [Key] { Array(open.keys) }

    /// Compares the open decisions.
    ///
    /// - Parameter logged: the decisions of the log.
    mutating func compare(_ logged: [Key: RuleDecision]) {
        for (key, record) in open.sorted(by: { $0.key.notification.uuidString < $1.key.notification.uuidString }) {
            switch logged[key] {
            case record.decision: reproduced += 1
            case nil: unlogged += 1
            case let other?:
                differing.append(
                    "\(record.person.user) \(record.rule) \(key.notification.uuidString.lowercased()): "
                        + "\(record.decision.readableText), logged is \(other.readableText)")
            }
        }
        open = [:]
    }
}
