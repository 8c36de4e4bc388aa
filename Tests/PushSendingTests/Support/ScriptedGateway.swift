import PushProtocol
import PushSending
import Synchronization

/// A provider that answers each target by a script, and remembers what it was asked to send.
final class ScriptedGateway: PushGateway {
    typealias Script = @Sendable (Push.Target, _ call: Int) async -> GatewayAnswer

    let quota: QuotaGate?
    private let script: Mutex<Script>
    private let log = Mutex<[DeviceToken]>([])

    init(quota: QuotaGate? = nil, _ script: @escaping Script = { _, _ in .settled(.accepted(id: nil)) }) {
        self.quota = quota
        self.script = Mutex(script)
    }

    var sent: [DeviceToken] { log.withLock { $0 } }

    func answer(_ script: @escaping Script) { self.script.withLock { $0 = script } }

    func render(_ push: Push) -> any PushRendering { BareRendering() }

    func send(
        _ copies: [Copy], of renderings: [any PushRendering], in _: Lane, mayStart: @escaping @Sendable (Copy) -> Bool
    ) async -> [GatewayAnswer] {
        await withTaskGroup(of: (Int, GatewayAnswer).self) { group in
            for (place, copy) in copies.enumerated() {
                let call = log.withLock { log in
                    log.append(copy.target.token)
                    return log.count
                }
                group.addTask { (place, await self.script.withLock { $0 }(copy.target, call)) }
            }
            var answers = [GatewayAnswer](repeating: .withdrawn, count: copies.count)
            for await (place, answer) in group { answers[place] = answer }
            return answers
        }
    }
}
