import Providers
import PushProtocol
import PushSending
import Synchronization

/// A gateway that answers each target by a script and records the requests.
final class ScriptedGateway: PushGateway {
    typealias Script = @Sendable (Push.Target, _ call: Int) async -> SendResult

    let quota: QuotaLimiter?
    private let script: Mutex<Script>
    private let log = Mutex<[DeviceToken]>([])

    init(quota: QuotaLimiter? = nil, _ script: @escaping Script = { _, _ in .settled(.accepted(id: nil)) }) {
        self.quota = quota
        self.script = Mutex(script)
    }

    var sent: [DeviceToken] { log.withLock { $0 } }

    func answer(_ script: @escaping Script) { self.script.withLock { $0 = script } }

    func render(_ push: Push) -> any PushRendering { BareRendering() }

    func send(
        _ requests: [TargetRequest], of renderings: [any PushRendering], in _: Lane,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool
    ) async -> [SendResult] {
        await withTaskGroup(of: (Int, SendResult).self) { group in
            for (index, request) in requests.enumerated() {
                let call = log.withLock { log in
                    log.append(request.target.token)
                    return log.count
                }
                group.addTask { (index, await self.script.withLock { $0 }(request.target, call)) }
            }
            var results = [SendResult](repeating: .withdrawn, count: requests.count)
            for await (index, result) in group { results[index] = result }
            return results
        }
    }
}
