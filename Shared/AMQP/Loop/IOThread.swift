internal import CRabbitMQ
internal import Glibc

/// A thread of our own for a library that blocks. Never the cooperative pool.
enum IOThread {
    /// The library decodes nested tables recursively and 0.11 sets no limit: a full frame of 21 800 levels needs less
    /// than 8 MiB (§2.8 of the messaging reference).
    static let stackSize = 16 * 1024 * 1024

    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(_ name: String, _ run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts a detached thread. `name` is cut to the 15 bytes the system keeps.
    static func start(_ name: String, stackSize: Int = stackSize, _ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackSize)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let argument = Unmanaged.passRetained(Body(name, body)).toOpaque()
        // The thread takes over the retained body.
        let status = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                body.name.withCString { shim_name_thread($0) }
                body.run()
                return nil
            }, argument)
        precondition(status == 0, "the system gives no more threads")
    }

    /// Runs `body` on a thread of its own and returns when it has ended.
    static func run(_ name: String, _ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            start(name) {
                body()
                continuation.resume()
            }
        }
    }
}
