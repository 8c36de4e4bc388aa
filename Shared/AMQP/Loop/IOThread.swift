internal import CRabbitMQ
internal import Glibc

/// Dedicated threads for librabbitmq, which blocks. Swift's cooperative pool must not block.
enum IOThread {
    /// librabbitmq 0.11 decodes nested tables recursively without a limit. The 21 800 levels of a full frame need less
    /// than 8 MiB (Shared/Messaging/BrokerFacts.md §2.8).
    static let stackSize = 16 * 1024 * 1024

    /// Starts a detached thread. Linux truncates `name` to 15 bytes.
    static func start(
        _ name: String, stackSize: Int = stackSize, _ resources: SystemResources = .real,
        _ body: @escaping @Sendable () -> Void
    ) throws(AMQPError) {
        let status = resources.startThread(stackSize) {
            name.withCString { shim_name_thread($0) }
            body()
        }
        guard status == 0 else {
            throw .noResources("the thread \(name)", status, "raise the limit of threads (ulimit -u, pids.max)")
        }
    }

    /// Runs `body` on a new thread and returns after its end.
    static func run(
        _ name: String, _ resources: SystemResources = .real, _ body: @escaping @Sendable () -> Void
    ) async throws(AMQPError) {
        let fault: AMQPError? = await withCheckedContinuation { continuation in
            do throws(AMQPError) {
                try start(name, resources) {
                    body()
                    continuation.resume(returning: nil)
                }
            } catch {
                continuation.resume(returning: error)
            }
        }
        if let fault { throw fault }
    }
}
