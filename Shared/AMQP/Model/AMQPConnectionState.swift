/// Where a connection stands, for readiness checks and metrics.
package enum AMQPConnectionState: Hashable, Sendable {
    /// Not connected (yet, or again); tries go on by themselves. Readiness should fail after 30 s of this.
    case connecting(since: ContinuousClock.Instant, lastError: AMQPError?)
    case connected
    /// Connected, but the broker takes no messages for now: its memory or disk alarm is on.
    case blocked(reason: String)
    /// Shut down for good.
    case closed

    /// Whether work gets through.
    package var isConnected: Bool {
        switch self {
        case .connected: true
        case .connecting, .blocked, .closed: false
        }
    }
}

/// How much may be published and not yet confirmed.
///
/// The byte limit stays below what the kernel's socket buffers absorb: when a blocked broker stops reading, confirms
/// stop, and the window closes before a send could block the connection's thread. A single message larger than the
/// limit still goes, alone.
package struct AMQPPublishWindow: Hashable, Sendable {
    package let messages: Int
    package let bytes: Int

    package init(messages: Int = 500, bytes: Int = 256 * 1024) {
        precondition(messages > 0 && bytes > 0, "a window lets at least one message through")
        self.messages = messages
        self.bytes = bytes
    }
}
