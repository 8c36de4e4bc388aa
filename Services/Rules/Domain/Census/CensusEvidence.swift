import FoundationEssentials
import PushProtocol

/// The lengths of queues and the reports of services in the last minutes. They prove that a message is nowhere: its
/// queue was empty, and since then its consumers have settled all deliveries from before.
struct CensusEvidence: Sendable {
    /// A look at a queue.
    struct Probe: Hashable, Sendable {
        var at: Timestamp
        /// Ready messages. AMQP has no number of unacknowledged ones.
        var messages: Int
        var consumers: Int
    }

    /// The last report of a process.
    struct Process: Hashable, Sendable {
        var service: String
        var process: UUID
        var receivedAt: Timestamp
        var sentAt: Timestamp
        /// The arrival of the oldest unsettled delivery, or ``sentAt``: older deliveries are settled.
        var oldestAt: Timestamp
        var isFinal: Bool
    }

    /// Older deliveries than `settledUntil` were settled, and their results published, by `at`.
    private struct Clearance: Sendable {
        var settledUntil: Timestamp
        var at: Timestamp
    }

    /// A process without a report for so long is gone.
    static let lifetime = Duration.seconds(12)
    /// The maximum difference of the clocks of two machines.
    static let clockTolerance = Duration.seconds(2)
    /// How long looks and reports are kept.
    static let memory = Duration.seconds(300)

    private var probes: [WorkQueue: [Probe]] = [:]
    private var clearances: [String: [Clearance]] = [:]
    private var live: Set<String> = []
    /// The last report of the latest process of a service that ended without a final one.
    private var lost: [String: Timestamp] = [:]

    mutating func add(_ probe: Probe, of queue: WorkQueue) {
        probes[queue, default: []].append(probe)
        probes[queue]?.removeAll { probe.at - $0.at > Self.memory }
    }

    /// Adds the last report of each process.
    mutating func add(_ processes: [Process], now: Timestamp) {
        live = []
        for (service, processes) in Dictionary(grouping: processes, by: \.service) {
            let (present, gone) = (
                processes.filter { !$0.isFinal && now - $0.receivedAt <= Self.lifetime },
                processes.filter { !$0.isFinal && now - $0.receivedAt > Self.lifetime }
            )
            if let last = gone.map(\.receivedAt).max() { lost[service] = max(lost[service] ?? last, last) }
            guard let settledUntil = present.map(\.oldestAt).min(), let at = present.map(\.sentAt).max() else {
                continue
            }
            live.insert(service)
            let clearance = Clearance(settledUntil: settledUntil - Self.clockTolerance, at: at + Self.clockTolerance)
            if clearances[service]?.last?.at != clearance.at { clearances[service, default: []].append(clearance) }
            clearances[service]?.removeAll { now - $0.at > Self.memory }
        }
    }

    /// Whether a message is nowhere in these passages. It entered the first one not after `time`.
    func isNowhere(in passages: [[CensusPassage]], since time: Timestamp) -> Bool {
        var time = time
        for parallel in passages {
            var latest = time
            for passage in parallel {
                guard let end = clear(passage, since: time) else { return false }
                latest = max(latest, end)
            }
            time = latest
        }
        return true
    }

    /// When a message that entered the passage not after `time` had left it; `nil` if it may be in it.
    private func clear(_ passage: CensusPassage, since time: Timestamp) -> Timestamp? {
        var emptyAt = time
        var hasConsumers = false
        for queue in passage.queues {
            guard let probe = probes[queue]?.first(where: { $0.at > time && $0.messages == 0 }) else { return nil }
            emptyAt = max(emptyAt, probe.at)
            hasConsumers = hasConsumers || probe.consumers > 0
        }
        guard live.contains(passage.service) else { return hasConsumers ? nil : emptyAt }
        return clearances[passage.service]?.first { $0.settledUntil > emptyAt }?.at
    }

    /// Whether a process of the stage ended since `time` without its last report. That report's notifications are
    /// unknown.
    func hasLostReport(of services: [String], since time: Timestamp) -> Bool {
        services.contains { lost[$0].map { $0 + Self.lifetime > time } ?? false }
    }
}
