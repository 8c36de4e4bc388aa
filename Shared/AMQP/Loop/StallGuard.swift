internal import Glibc
internal import Synchronization

/// Breaks the socket of a connection whose thread has stopped turning.
///
/// librabbitmq 0.11 can block for ever while publishing to a broker that fell silent (its bug #780) or that takes no
/// more (#519). Shutting the socket down from another thread touches no state of the library and makes the blocked
/// call return at once (§2.4 of the messaging reference).
final class StallGuard: Sendable {
    private struct Watched {
        /// A duplicate of the socket's descriptor: the library may close its own at any error, and the number may go
        /// to someone else before we hear of it. Ours stays ours until ``release()``.
        var descriptor: Int32?
        var lastTick: ContinuousClock.Instant
        var isEnded = false
    }

    private let watched = Mutex(Watched(descriptor: nil, lastTick: .now))
    private let wakeup: Wakeup
    private let resources: SystemResources
    private let limit: Duration

    deinit { release() }

    /// - Parameter limit: how long the thread may go without ticking while connected.
    init(limit: Duration, _ resources: SystemResources = .real) {
        self.limit = limit
        self.resources = resources
        wakeup = Wakeup(resources)
    }

    // MARK: - The connection's thread

    func watch(_ descriptor: Int32) {
        release()
        watched.withLock {
            $0.descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            $0.lastTick = .now
        }
    }

    func tick(_ now: ContinuousClock.Instant) { watched.withLock { $0.lastTick = now } }

    /// The connection is over. Until then the peer may not see it closed.
    func release() {
        watched.withLock { watched in
            if let descriptor = watched.descriptor { close(descriptor) }
            watched.descriptor = nil
        }
    }

    /// Ends the guard's thread.
    func end() {
        watched.withLock { $0.isEnded = true }
        wakeup.signal()
    }

    // MARK: - The guard's own thread

    /// Starts watching; `onStall` is told how long the thread had been stuck.
    func start(_ name: String, onStall: @escaping @Sendable (Duration) -> Void) throws(AMQPError) {
        if let fault = wakeup.fault { throw fault }
        try IOThread.start("\(name)-guard", stackSize: 256 * 1024, resources) { [self] in
            while !watched.withLock({ $0.isEnded }) {
                wakeup.wait(timeout: limit / 8)
                if let age = breakStalled(.now) { onStall(age) }
            }
        }
    }

    /// Shuts the socket down when its thread has not ticked for too long.
    func breakStalled(_ now: ContinuousClock.Instant) -> Duration? {
        watched.withLock { watched in
            guard let descriptor = watched.descriptor else { return nil }
            let age = now - watched.lastTick
            guard age > limit else { return nil }
            shutdown(descriptor, Int32(SHUT_RDWR))
            watched.lastTick = now
            return age
        }
    }
}
