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
    let courtesy: Courtesy
    let logger: Logger

    func run() async throws {
        await Rounds(
            every: Self.pace, trouble: "Lists of campaigns that are over cannot be deleted now",
            relief: "Lists of campaigns that are over are deleted again", logger: logger
        ).run {
            try await store.forgetLists { step in
                let pause = courtesy.rest(after: step)
                if pause > .zero { try await Task.sleep(for: pause) }
            }
        }
    }
}
