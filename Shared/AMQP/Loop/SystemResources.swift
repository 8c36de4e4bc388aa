internal import CRabbitMQ
internal import Glibc

/// The system calls that a connection needs. Tests replace them to simulate exhaustion.
struct SystemResources: Sendable {
    /// Makes an eventfd; negative on failure, with `errno` set.
    var eventfd: @Sendable () -> Int32 = { shim_eventfd() }
    /// Starts a detached thread that runs `body`; returns 0 or an `errno`.
    var startThread: @Sendable (_ stackSize: Int, _ body: @escaping @Sendable () -> Void) -> Int32 = {
        Self.startDetached(stackSize: $0, $1)
    }

    static let real = SystemResources()

    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private static func startDetached(stackSize: Int, _ body: @escaping @Sendable () -> Void) -> Int32 {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackSize)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let retained = Unmanaged.passRetained(Body(body))
        let status = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, retained.toOpaque())
        // A thread that did not start does not release `body`.
        if status != 0 { retained.release() }
        return status
    }
}

extension AMQPError {
    /// The error of an exhausted system resource.
    static func noResources(_ resource: String, _ code: Int32, _ advice: String) -> AMQPError {
        AMQPError(
            .configuration, operation: "make \(resource)", detail: "\(String(cString: strerror(code))); \(advice)")
    }
}
