import PushProtocol
import Synchronization

/// Records paused and resumed queues, in order.
final class QueueActionLog: Sendable {
    private let log = Mutex<[String]>([])

    var lines: [String] { log.withLock { $0 } }
    func add(_ word: String, _ queue: WorkQueue) { log.withLock { $0.append("\(word) \(queue.name)") } }
}
