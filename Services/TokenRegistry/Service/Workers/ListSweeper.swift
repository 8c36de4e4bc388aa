import Logging
import Messaging
import RegistryStore
import ServiceKit
import ServiceLifecycle

/// Deletes the user lists of ended campaigns. Slows down while interactive notifications arrive, as campaigns do. Any
/// number of processes may run it. Runs until graceful shutdown.
struct ListSweeper: Service {
    /// Time between two rounds.
    static let pace = Duration.seconds(10)

    let store: CampaignStore
    let bulkThrottle: BulkThrottle
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot delete the lists of ended campaigns; retrying",
            recoveryMessage: "Deleting the lists of ended campaigns again", logger: logger
        ).run {
            try await store.deleteEndedLists { step in
                let pause = bulkThrottle.pause(after: step)
                if pause > .zero { try await Task.sleep(for: pause) }
            }
        }
    }
}
