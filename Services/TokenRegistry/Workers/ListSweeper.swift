import Logging
import Messaging
import ServiceKit
import ServiceLifecycle

/// Deletes the lists of campaigns that are over, whoever ended them. Makes way for interactive notifications, as campaigns do.
/// Any number of processes may run it. Runs until graceful shutdown.
struct ListSweeper: Service {
    /// Between two looks for lists.
    static let pace = Duration.seconds(10)

    let store: CampaignStore
    let bulkThrottle: BulkThrottle
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Lists of campaigns that are over cannot be deleted now",
            recoveryMessage: "Lists of campaigns that are over are deleted again", logger: logger
        ).run {
            try await store.forgetLists { step in
                let pause = bulkThrottle.pause(after: step)
                if pause > .zero { try await Task.sleep(for: pause) }
            }
        }
    }
}
