import PushProtocol
import PushSending
import Synchronization

/// A provider that answers each target by a script, and remembers what it was asked to send.
final class ScriptedGateway: PushGateway {
    typealias Script = @Sendable (Push.Target, _ call: Int) async -> GatewayAnswer

    private let script: Mutex<Script>
    private let log = Mutex<[DeviceToken]>([])

    init(_ script: @escaping Script = { _, _ in .settled(.accepted(id: nil)) }) { self.script = Mutex(script) }

    var sent: [DeviceToken] { log.withLock { $0 } }

    func answer(_ script: @escaping Script) { self.script.withLock { $0 = script } }

    func render(_ push: Push) {}

    func send(to target: Push.Target, from rendering: Void, delivery: DeliveryPolicy) async -> GatewayAnswer {
        let call = log.withLock { log in
            log.append(target.token)
            return log.count
        }
        return await script.withLock { $0 }(target, call)
    }
}
