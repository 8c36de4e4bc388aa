import Logging
import Messaging
import PushProtocol
import PushSending
import TestSupport
import Testing

struct SenderPolicyTests {
    private let policy = PushStageHandler(
        provider: .apns, lanes: PushLanes([:], provider: .apns, logger: .silent), logger: .silent
    ).policy(.senderPushes(.apns, .interactive, AppID(rawValue: "demo")!))

    @Test(arguments: [1, 6, 20, 100, 500])
    func `a batch has few more targets than are sent at once, whatever its pushes have`(count: Int) throws {
        let pushes = try self.pushes(like: Push.sample(targets: Self.targets(count)))
        #expect(pushes * count <= max(count, 250))
        #expect(pushes * count >= min(count, 100))
        // Of those with one target as many go into a batch as it may have.
        #expect(count > 1 || pushes == policy.batchSize)
    }

    @Test func `a long text leaves room for company`() throws {
        var push = Push.sample(targets: Self.targets(1))
        push.content.body = String(repeating: "a", count: 3000)
        #expect(try pushes(like: push) >= 8)
    }

    @Test func `an app's queues of both lanes are worked on where its connections are`() throws {
        let app = AppID(rawValue: "demo")!
        let executor = MarkedExecutor()
        let handler = PushStageHandler(
            provider: .apns, lanes: PushLanes([:], provider: .apns, logger: .silent), executors: [app: executor],
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

    /// As a campaign tells as many people.
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
