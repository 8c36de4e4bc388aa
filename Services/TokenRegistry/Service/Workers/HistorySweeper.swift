import Logging
import Metrics
import PushProtocol
import RegistryStore
import ServiceKit
import ServiceLifecycle

/// Deletes ended memberships, campaigns and imports after their retention (``RetentionTerms``), in small steps. Any
/// number of processes may run it; steps exclude each other. Runs until graceful shutdown.
struct HistorySweeper: Service {
    let store: HistoryStore
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: StaleSweeper.pace, failureMessage: "Cannot delete old memberships, campaigns or imports; retrying",
            recoveryMessage: "Deleting old memberships, campaigns and imports again", logger: logger
        ).runWithOwnPauses { try await step() }
    }

    /// Runs one step.
    ///
    /// - Returns: the time until the next step.
    func step() async throws -> Duration {
        switch try await store.advance(now: try await now()) {
        case .elsewhere: return StaleSweeper.pace
        case .more(let memberships):
            DeletedRows.tell(memberships, of: "membership")
            return StaleSweeper.pace
        case .finished(let memberships, let records):
            DeletedRows.tell(memberships, of: "membership")
            DeletedRows.tell(records.campaigns, of: "campaign")
            DeletedRows.tell(records.imports, of: "import")
            for campaign in records.expired {
                logger.notice(
                    "Inactive campaign has expired", metadata: ["campaign": "\(campaign)"])
            }
            return StaleSweeper.rest
        }
    }
}

enum DeletedRows {
    static func tell(_ count: Int, of table: String) {
        guard count > 0 else { return }
        Counter(label: "heliograph_registry_deleted_rows_total", dimensions: [("table", table)]).increment(by: count)
    }
}
