/// The task of a connection: publishing or consuming. Used on the connection's thread only.
///
/// The loop calls ``connectionOpened(_:now:)``, then repeatedly ``receive(_:now:)`` for each available frame and
/// ``processCommands(_:now:)``. After an error it calls ``connectionLost(_:close:now:)`` and starts over.
protocol ConnectionRole: SendableMetatype {
    /// Called with a new connection and an open channel.
    mutating func connectionOpened(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError)
    /// Handles a frame of the working channel.
    mutating func receive(_ frame: Frame, now: ContinuousClock.Instant) throws(AMQPError)
    /// Runs the callers' commands and sends. Called after all available frames were received.
    mutating func processCommands(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError)
    /// Runs the commands that need no connection.
    mutating func processCommandsOffline(now: ContinuousClock.Instant)
    /// Called after the end of a connection. `close` is the broker's close method, if it sent one.
    mutating func connectionLost(_ error: AMQPError, close: Frame.Close?, now: ContinuousClock.Instant)
        -> ReconnectDelay
    /// Called when a broker alarm starts or ends.
    mutating func setBlocked(_ isBlocked: Bool)
    /// When to call ``processCommands(_:now:)`` although nothing arrived.
    var deadline: ContinuousClock.Instant? { get }
    /// Whether enough deliveries are unsettled to batch socket reads for a few milliseconds.
    var canBatchReads: Bool { get }
    /// Whether unsettled bytes exceed their limit, so that reading pauses.
    var isReadingPaused: Bool { get }
    /// Whether shutdown was requested and nothing is pending.
    func isFinished(now: ContinuousClock.Instant) -> Bool
    /// Called when the thread ends. Must complete all waiting callers.
    mutating func finish()
}

/// How soon to reconnect.
enum ReconnectDelay {
    case afterBackoff
    /// Immediately: the role found the cause and does not repeat it. Limited by
    /// ``ConnectionLoop/immediateReconnectLimit``.
    case immediately
}
