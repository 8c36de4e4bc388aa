/// The state of a connection, for readiness checks and metrics.
package enum AMQPConnectionState: Hashable, Sendable {
    /// Not connected; retried automatically. Readiness should fail after 30 s.
    case connecting(since: ContinuousClock.Instant, lastError: AMQPError?)
    case connected
    /// Connected, but the broker blocks publishers because of a memory or disk alarm (RabbitMQ: Memory and Disk
    /// Alarms).
    case blocked(reason: String)
    /// Shut down. Final.
    case closed
}

/// The limits of unconfirmed publishes.
///
/// The byte limit is below the capacity of the kernel's socket buffers. When a blocked broker stops reading, confirms
/// stop too, and the window closes before `send` could block the thread (Shared/Messaging/BrokerFacts.md §2.5). A
/// message larger than the limit is sent alone.
package struct AMQPPublishWindow: Hashable, Sendable {
    package let messages: Int
    package let bytes: Int

    package init(messages: Int = 500, bytes: Int = 256 * 1024) {
        precondition(messages > 0 && bytes > 0, "a window lets at least one message through")
        self.messages = messages
        self.bytes = bytes
    }
}
