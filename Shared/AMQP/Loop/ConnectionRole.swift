/// What one connection is for: publishing, or consuming. Lives on the connection's thread and nowhere else.
///
/// The loop calls ``opened(_:now:)``, then ``receive(_:now:)`` for every frame at hand and ``work(_:now:)`` after them,
/// over and over, until something throws; then ``lost(_:close:now:)``, and again from the start.
protocol ConnectionRole: SendableMetatype {
    /// A fresh connection with a fresh channel.
    mutating func opened(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError)
    /// A frame of the working channel.
    mutating func receive(_ frame: Frame, now: ContinuousClock.Instant) throws(AMQPError)
    /// Everything at hand was received: take the callers' orders and send what may be sent.
    mutating func work(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError)
    /// There is no connection: take the orders that need none.
    mutating func workDisconnected(now: ContinuousClock.Instant)
    /// The connection is gone; `close` is what the broker said, when it said so.
    mutating func lost(_ error: AMQPError, close: Frame.Close?, now: ContinuousClock.Instant) -> Recovery
    /// The broker takes no messages for now.
    mutating func blocked(_ isBlocked: Bool)
    /// When ``work(_:now:)`` wants to be called without anything having happened.
    var deadline: ContinuousClock.Instant? { get }
    /// Whether there is so much in hand that further frames may wait for each other, for a few milliseconds.
    var hasEnough: Bool { get }
    /// Whether reading pauses because of the bytes of unsettled deliveries.
    var isFull: Bool { get }
    /// Asked to end, and nothing is left to do.
    func isFinished(now: ContinuousClock.Instant) -> Bool
    /// The thread ends; nobody may be left waiting.
    mutating func finish()
}

/// How soon to connect again.
enum Recovery {
    case backedOff
    /// The role knows who was to blame, and will not do the same again. Backed off all the same when it happens often.
    case atOnce
}
