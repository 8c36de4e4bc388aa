import PushProtocol
import Synchronization

/// Remembers which queues were switched off and on, in order.
final class SwitchLog: Sendable {
    private let log = Mutex<[String]>([])

    var lines: [String] { log.withLock { $0 } }
    func add(_ word: String, _ queue: WorkQueue) { log.withLock { $0.append("\(word) \(queue.name)") } }
}
