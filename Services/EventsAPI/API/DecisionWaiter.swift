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
    /// A failed read is repeated until the time is over.
    ///
    /// - Returns: nil if too many requests wait, or no read succeeded. The events are published in any case.
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
        var last: [Explanation?]?
        var problem: PostgresError?
        repeat {
            do throws(PostgresError) {
                var found: [Explanation?] = []
                for event in events { found.append(try await explanation(of: event)) }
                last = found
                if found.allSatisfy({ $0?.isComplete == true }) { return found }
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
                metadata: [LogKey.error: "\(problem)"])
        }
        return last
    }

    private func explanation(of event: DomainEvent) async throws(PostgresError) -> Explanation? {
        // Ids are unique for their source only.
        try await store.explain(.init(event: event.id, app: event.app)).first { $0.source == event.source }
    }
}
