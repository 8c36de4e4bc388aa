import DecisionLog
import Logging
import Postgres
import PushProtocol
import ServiceKit
import Synchronization

/// Waits for the decisions and outcomes of published events.
final class DecisionWaiter: Sendable {
    /// The maximum number of requests that wait.
    static let maximumRequests = 100
    /// The pauses between two reads of the decision log; the last one repeats.
    private static let pauses: [Duration] = [50, 100, 200, 400].map { .milliseconds($0) }
    private static let longestPause = Duration.milliseconds(800)

    private let store: ExplanationStore
    private let logger: Logger
    private let waiting = Mutex(0)

    init(store: ExplanationStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    /// Returns the log's entries about the events, in their order, as soon as all are complete or the time is over.
    ///
    /// - Returns: nil if too many requests wait, or the database cannot be read. The events are published in any case.
    func explanations(of events: [DomainEvent], within time: Duration) async -> [Explanation?]? {
        let mayWait = waiting.withLock { waiting in
            guard waiting < Self.maximumRequests else { return false }
            waiting += 1
            return true
        }
        guard mayWait else { return nil }
        defer { waiting.withLock { $0 -= 1 } }
        let end = ContinuousClock.now + time
        var round = 0
        do {
            while true {
                var found: [Explanation?] = []
                for event in events { found.append(try await explanation(of: event)) }
                let now = ContinuousClock.now
                if found.allSatisfy({ $0?.isComplete == true }) || now >= end { return found }
                let pause = round < Self.pauses.count ? Self.pauses[round] : Self.longestPause
                round += 1
                try await Task.sleep(until: min(now + pause, end), clock: .continuous)
            }
        } catch {
            logger.warning(
                "The decisions about an event could not be read; its publisher gets the answer without them",
                metadata: [LogKey.error: "\(error)"])
            return nil
        }
    }

    private func explanation(of event: DomainEvent) async throws(PostgresError) -> Explanation? {
        // Ids are unique for their source only.
        try await store.explain(.init(event: event.id, app: event.app)).first { $0.source == event.source }
    }
}
