import DecisionLog
import Logging
import Postgres
import PushProtocol
import ServiceKit

/// Waits for the decisions and outcomes of published events.
final class DecisionWaiter: Sendable {
    /// The maximum number of publishers' requests that wait.
    static let maximumRequests = 100
    /// The pauses between two reads of the decision log; the last one repeats.
    private static let pauses: [Duration] = [50, 100, 200, 400].map { .milliseconds($0) }
    private static let longestPause = Duration.milliseconds(800)
    /// The time without a further outcome after which the outcomes of an event count as complete. The log does not have
    /// the number of a user's devices, and their outcomes arrive one by one.
    static let settlingTime = Duration.seconds(1)

    /// The log's entries about events.
    struct Knowledge: Sendable {
        /// One for each event, in order; nil without a decision.
        var explanations: [Explanation?]
        /// The missing part; nil if nothing is missing.
        var lack: Lack?
    }

    /// The first part that is missing, in the order in which the parts arrive.
    enum Lack: String, Sendable, CaseIterable {
        /// Rules has no decision about an event.
        case undecided
        /// A fan-out to many users is in progress.
        case fanOut = "fan-out"
        /// A push has no outcome.
        case outcomes
        /// Each push has an outcome, and the last one arrived less than ``DecisionWaiter/settlingTime`` ago.
        case settling
    }

    private let store: ExplanationStore
    private let logger: Logger
    private let settlingTime: Duration
    private let waiting: ConcurrencyLimit

    init(
        store: ExplanationStore, maximumRequests: Int = DecisionWaiter.maximumRequests,
        settlingTime: Duration = DecisionWaiter.settlingTime, logger: Logger
    ) {
        self.store = store
        self.settlingTime = settlingTime
        self.logger = logger
        waiting = ConcurrencyLimit(maximumRequests)
    }

    /// Returns the log's entries about the events as soon as all are complete or the time is over.
    ///
    /// A failed read is repeated until the time is over.
    ///
    /// - Returns: nil if too many requests wait, or no read succeeded. The events are published in any case.
    func knowledge(of events: [EventReceipt.Identity], within time: Duration) async -> Knowledge? {
        await waiting.run { await read(events, within: time) } ?? nil
    }

    private func read(_ events: [EventReceipt.Identity], within time: Duration) async -> Knowledge? {
        let end = ContinuousClock.now + time
        var round = 0
        var last: Knowledge?
        var problem: PostgresError?
        var settling = Settling(settlingTime)
        repeat {
            do throws(PostgresError) {
                var found: [Explanation?] = []
                for event in events { found.append(try await explanation(of: event)) }
                let knowledge = Knowledge(explanations: found, lack: settling.lack(found, at: .now))
                last = knowledge
                if knowledge.lack == nil { return knowledge }
            } catch {
                problem = error
            }
            let pause = round < Self.pauses.count ? Self.pauses[round] : Self.longestPause
            round += 1
            let now = ContinuousClock.now
            guard now < end else { break }
            do { try await Task.sleep(until: min(now + pause, end), clock: .continuous) } catch { break }
        } while true
        if last == nil, let problem {
            logger.warning(
                "The decisions about an event could not be read; its publisher gets the answer without them",
                metadata: [
                    LogKey.correlation: "\(events.first?.id ?? "-")", LogKey.count: "\(events.count)",
                    LogKey.error: "\(problem)",
                ])
        }
        return last
    }

    private func explanation(of event: EventReceipt.Identity) async throws(PostgresError) -> Explanation? {
        try await store.explain(.init(event: event.id, app: event.app, source: event.source)).first
    }
}

/// Finds out when no further outcome arrives.
private struct Settling {
    private let time: Duration
    /// The number of outcomes, and the time at which it was first seen.
    private var steady: (outcomes: Int, since: ContinuousClock.Instant)?

    init(_ time: Duration) { self.time = time }

    /// Returns the missing part of the entries. Calls are in the order of time.
    mutating func lack(_ found: [Explanation?], at now: ContinuousClock.Instant) -> DecisionWaiter.Lack? {
        let entries = found.compactMap(\.self)
        let outcomes = entries.reduce(0) { $0 + $1.outcomeCount }
        if steady?.outcomes != outcomes { steady = (outcomes, now) }
        if entries.count < found.count { return .undecided }
        if entries.contains(where: { !$0.fanOuts.isEmpty }) { return .fanOut }
        if entries.contains(where: { !$0.isComplete }) { return .outcomes }
        guard entries.contains(where: \.mayGetOutcomes) else { return nil }
        return steady.map { now - $0.since >= time } == true ? nil : .settling
    }
}
