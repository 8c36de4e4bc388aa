internal import Glibc
internal import Synchronization

/// Shuts down the socket of a connection whose thread is blocked.
///
/// librabbitmq 0.11 can block forever while publishing to a silent broker (alanxz/rabbitmq-c #780) or to one that reads
/// nothing (#519). `shutdown(2)` from another thread touches no library state and ends the blocked call
/// (Shared/Messaging/BrokerFacts.md §2.4).
final class SocketWatchdog: Sendable {
    private struct Watched {
        /// A duplicate of the socket descriptor. The library may close its own at any error, and the number could then
        /// belong to another file.
        var descriptor: Int32?
        var lastTick: ContinuousClock.Instant
        var isEnded = false
    }

    private let watched = Mutex(Watched(descriptor: nil, lastTick: .now))
    private let wakeup: Wakeup
    private let resources: SystemResources
    private let limit: Duration

    deinit { release() }

    /// - Parameter limit: The longest time without a tick while connected.
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

    /// Closes the duplicate descriptor. Until then the peer may not see the connection as closed.
    func release() {
        watched.withLock { watched in
            if let descriptor = watched.descriptor { close(descriptor) }
            watched.descriptor = nil
        }
    }

    /// Ends the watchdog's thread.
    func end() {
        watched.withLock { $0.isEnded = true }
        wakeup.signal()
    }

    // MARK: - The watchdog's thread

    /// Starts the watchdog's thread. `onStall` receives the time since the last tick.
    func start(_ name: String, onStall: @escaping @Sendable (Duration) -> Void) throws(AMQPError) {
        if let fault = wakeup.fault { throw fault }
        try IOThread.start("\(name)-guard", stackSize: 256 * 1024, resources) { [self] in
            while !watched.withLock({ $0.isEnded }) {
                wakeup.wait(timeout: limit / 8)
                if let age = shutDownIfStalled(.now) { onStall(age) }
            }
        }
    }

    /// Shuts the socket down when the last tick is older than the limit, and returns its age.
    func shutDownIfStalled(_ now: ContinuousClock.Instant) -> Duration? {
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
