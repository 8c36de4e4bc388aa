internal import CRabbitMQ
internal import Glibc

/// A thread of our own for a library that blocks. Never the cooperative pool.
enum IOThread {
    /// The library decodes nested tables recursively and 0.11 sets no limit: a full frame of 21 800 levels needs less
    /// than 8 MiB (§2.8 of the messaging reference).
    static let stackSize = 16 * 1024 * 1024

    /// Starts a detached thread. `name` is cut to the 15 bytes the system keeps.
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

    /// Runs `body` on a thread of its own and returns when it has ended.
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
