internal import FoundationEssentials
internal import PushProtocol
internal import Synchronization

/// The notifications that a process settled since its last ``CensusReport``.
///
/// While the broker takes no report, keeps the first 200,000 keys and drops the others. The census then names an
/// earlier stage for a lost notification among the dropped ones.
package final class CensusLog: Sendable {
    static let maximumKeys = 200_000

    struct Entries: Sendable {
        var settled = CensusKeys()
        var retried = CensusKeys()
        var deadLettered = CensusKeys()

        var isEmpty: Bool { settled.isEmpty && retried.isEmpty && deadLettered.isEmpty }
    }

    private let entries = Mutex(Entries())

    package init() {}

    func settled(_ notifications: [UUID]) { add(notifications) { $0.settled.append($1) } }

    func deadLettered(_ notifications: [UUID]) { add(notifications) { $0.deadLettered.append($1) } }

    func retried(_ notifications: [UUID], until: Timestamp) {
        add(notifications) { $0.retried.append($1, at: until) }
    }

    private func add(_ notifications: [UUID], _ append: (inout Entries, UUID) -> Void) {
        guard !notifications.isEmpty else { return }
        entries.withLock { entries in
            let size = entries.settled.bytes.count + entries.retried.bytes.count + entries.deadLettered.bytes.count
            guard size < 8 * Self.maximumKeys else { return }
            for notification in notifications { append(&entries, notification) }
        }
    }

    /// Removes and returns the oldest entries, at most as many as one report may have.
    func take() -> Entries {
        entries.withLock { entries in
            Entries(
                settled: entries.settled.removeFirst(CensusReport.maximumKeys, size: 8),
                retried: entries.retried.removeFirst(CensusReport.maximumKeys / 4, size: 16),
                deadLettered: entries.deadLettered.removeFirst(CensusReport.maximumKeys / 4, size: 8))
        }
    }

    /// Returns entries that no report carried.
    func restore(_ taken: Entries) {
        entries.withLock { entries in
            entries.settled.append(taken.settled)
            entries.retried.append(taken.retried)
            entries.deadLettered.append(taken.deadLettered)
        }
    }

    var isEmpty: Bool { entries.withLock { $0.isEmpty } }
}

/// Notes the settled messages of one stage in a ``CensusLog``.
struct StageCensus: Sendable {
    let log: CensusLog
    let collect: @Sendable (any ErasedDelivery, Bool, inout [UUID]) -> Void

    /// Notes the messages of a batch that are done, if `condition` holds for their results.
    func done(_ messages: [any ErasedDelivery], _ verdicts: [Verdict], where condition: ([Outbound]) -> Bool) {
        var notifications: [UUID] = []
        for index in messages.indices where condition(verdicts[index].outbound) {
            collect(messages[index], true, &notifications)
        }
        log.settled(notifications)
    }

    /// Notes settlements by their dispositions.
    func settled(_ settlements: [PendingSettlement]) {
        for settlement in settlements {
            guard let message = settlement.message else { continue }
            var notifications: [UUID] = []
            let isDone =
                switch settlement.disposition {
                case .done, .discard: true
                case .retry, .postpone, .deadLetter: false
                }
            collect(message, isDone, &notifications)
            switch settlement.disposition {
            case .done, .discard: log.settled(notifications)
            case .retry(let level, _), .postpone(let level, _):
                log.retried(notifications, until: .now + level.delay)
            case .deadLetter: log.deadLettered(notifications)
            }
        }
    }
}
