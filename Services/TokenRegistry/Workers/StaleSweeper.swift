import Logging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Flags what was not seen for a month, ends what its provider has forgotten (``InactivityRule``) and deletes what ended long ago
/// (``RetentionTerms``), one small step after the other: a table of a hundred million rows is looked through in little more
/// than a day. Any number of processes may run it: each step is one's. Runs until graceful shutdown.
struct StaleSweeper: Service {
    /// Between two steps.
    static let pace = Duration.seconds(1)
    /// Between the end of the table and beginning anew.
    static let rest = Duration.seconds(3600)

    private let store: SweepStore
    private let now: @Sendable () async throws -> Timestamp
    private let logger: Logger

    init(store: SweepStore, now: @escaping @Sendable () async throws -> Timestamp, logger: Logger) {
        self.store = store
        self.now = now
        self.logger = logger
    }

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Stale registrations cannot be looked for now",
            recoveryMessage: "Stale registrations are looked for again", logger: logger
        ).runWithOwnPauses {
            switch try await store.advance(now: try await now()) {
            case .finished(_, let deleted):
                DeletedRows.tell(deleted, of: "registration")
                return Self.rest
            case .more(_, let deleted):
                DeletedRows.tell(deleted, of: "registration")
                return Self.pace
            case .elsewhere: return Self.pace
            }
        }
    }
}
