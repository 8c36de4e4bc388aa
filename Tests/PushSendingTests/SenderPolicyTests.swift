import Logging
import Messaging
import PushProtocol
import PushSending
import Testing
import TestSupport

struct SenderPolicyTests {
    private let policy = PushStageHandler(
        provider: .apns, routes: ProviderRoutes([:], provider: .apns, logger: .silent), logger: .silent
    ).policy(.senderPushes(.apns, .interactive, AppID(rawValue: "demo")!))

    @Test(arguments: [1, 6, 20, 100, 500])
    func `a batch has about as many targets as requests in flight`(count: Int) throws {
        let pushes = try self.pushes(like: Push.sample(targets: Self.targets(count)))
        #expect(pushes * count <= max(count, 250))
        #expect(pushes * count >= min(count, 100))
        // Pushes with one target fill the batch size.
        #expect(count > 1 || pushes == policy.batchSize)
    }

    @Test func `a batch holds several pushes with long texts`() throws {
        var push = Push.sample(targets: Self.targets(1))
        push.content.body = String(repeating: "a", count: 3000)
        #expect(try pushes(like: push) >= 8)
    }

    @Test func `the queues of both lanes run on the app's executor`() throws {
        let app = AppID(rawValue: "demo")!
        let executor = MarkedExecutor()
        let handler = PushStageHandler(
            provider: .apns, routes: ProviderRoutes([:], provider: .apns, logger: .silent),
            executors: { $0 == app ? executor : nil },
            logger: .silent)
        for lane in Lane.allCases {
            let policy = handler.policy(.senderPushes(.apns, lane, app))
            #expect(policy.executor as? MarkedExecutor === executor)
            #expect(handler.policy(.senderPushes(.apns, lane, AppID(rawValue: "other")!)).executor == nil)
        }
    }

    private func pushes(like push: Push) throws -> Int {
        min(max(policy.batchBytes / (try push.wireBody().count), 1), policy.batchSize)
    }

    /// The targets of a campaign.
    private static func targets(_ count: Int) -> [Push.Target] {
        (0..<count).map { number in
            Push.Target(
                device: DerivedID.caused(by: DerivedID.namespace, "device", index: number),
                token: DeviceToken(secret: String(repeating: "0", count: 60) + String(number + 0x1000, radix: 16)),
                notification: DerivedID.caused(by: DerivedID.namespace, "notification", index: number),
                registeredAt: Timestamp(milliseconds: 1_767_220_000_000 + Int64(number)))
        }
    }
}

extension Logger {
    fileprivate static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
