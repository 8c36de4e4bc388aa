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
        let zeros = String(repeating: "0", count: 56)
        let push = Push.sample(
            targets: (0..<count).map { .sample(token: zeros + String($0 + 0x1000_0000, radix: 16)) })
        let pushes = min(max(policy.batchBytes / (try push.wireBody().count), 1), policy.batchSize)
        #expect(pushes * count <= max(count, 250))
        // Of those with one target as many go into a batch as it may have.
        #expect(count > 1 || pushes == policy.batchSize)
    }
}

extension Logger {
    fileprivate static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
