import Logging
import PushProtocol
import RegistryStore
import ServiceKit
import ServiceLifecycle

/// Flags registrations unseen for a month, ends those that their provider has expired (``InactivityRule``), and deletes
/// old ended ones (``RetentionTerms``), in small steps. A walk through a hundred million rows takes a little more than
/// a day. Any number of processes may run it; steps exclude each other. Runs until graceful shutdown.
struct StaleSweeper: Service {
    static let pace = Duration.seconds(1)
    /// Time between two walks.
    static let rest = Duration.seconds(3600)

    let store: SweepStore
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot sweep stale registrations; retrying",
            recoveryMessage: "Sweeping stale registrations again", logger: logger
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
