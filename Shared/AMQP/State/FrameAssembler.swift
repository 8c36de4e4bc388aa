/// Puts method, header and body frames of one channel together again. Pure.
struct FrameAssembler {
    /// What came out complete.
    enum Content: Hashable, Sendable {
        case delivery(Frame.Deliver, AMQPProperties, [UInt8])
        case returned(Frame.Return, AMQPProperties, [UInt8])
        /// A delivery whose body was dropped while it was read, since it is longer than allowed.
        case oversized(Frame.Deliver, AMQPProperties, bodySize: UInt64)
    }

    private enum Opening {
        case deliver(Frame.Deliver)
        case returned(Frame.Return)
    }

    private enum State {
        case idle
        case expectsHeader(Opening)
        case expectsBody(Opening, AMQPProperties, body: [UInt8], remaining: UInt64)
        case skipsBody(Opening, AMQPProperties, bodySize: UInt64, remaining: UInt64)
    }

    private var state = State.idle
    private let maximumBody: UInt64

    /// - Parameter maximumBody: the longest body that is put together, in bytes. Of a longer one no byte is kept.
    init(maximumBody: Int = .max) { self.maximumBody = UInt64(maximumBody) }

    /// No more than this is set aside on the word of a header alone.
    private static let trustedReserve: UInt64 = 1 << 20

    mutating func begin(_ deliver: Frame.Deliver) throws(AMQPError) { try begin(.deliver(deliver)) }
    mutating func begin(_ returned: Frame.Return) throws(AMQPError) { try begin(.returned(returned)) }

    private mutating func begin(_ opening: Opening) throws(AMQPError) {
        guard case .idle = state else { throw Self.violation("a message began inside another") }
        state = .expectsHeader(opening)
    }

    /// The content, when its body is empty.
    mutating func header(bodySize: UInt64, _ properties: AMQPProperties) throws(AMQPError) -> Content? {
        guard case .expectsHeader(let opening) = state else { throw Self.violation("a header without a method") }
        guard bodySize > 0 else {
            state = .idle
            return Self.content(opening, properties, [])
        }
        state =
            bodySize <= maximumBody
            ? .expectsBody(opening, properties, body: [], remaining: bodySize)
            : .skipsBody(opening, properties, bodySize: bodySize, remaining: bodySize)
        return nil
    }

    /// The content, when this was its last part.
    mutating func body(_ part: [UInt8]) throws(AMQPError) -> Content? {
        if case .skipsBody(let opening, let properties, let bodySize, let remaining) = state {
            return try skip(part, opening, properties, bodySize, remaining)
        }
        guard case .expectsBody(let opening, let properties, var body, let remaining) = state else {
            throw Self.violation("a body without a header")
        }
        state = .idle
        guard UInt64(part.count) <= remaining else { throw Self.violation("a body longer than announced") }
        if UInt64(part.count) == remaining {
            if body.isEmpty { return Self.content(opening, properties, part) }
            body += part
            return Self.content(opening, properties, body)
        }
        if body.isEmpty { body.reserveCapacity(Int(min(remaining, Self.trustedReserve))) }
        body += part
        state = .expectsBody(opening, properties, body: body, remaining: remaining - UInt64(part.count))
        return nil
    }

    private mutating func skip(
        _ part: [UInt8], _ opening: Opening, _ properties: AMQPProperties, _ bodySize: UInt64, _ remaining: UInt64
    ) throws(AMQPError) -> Content? {
        state = .idle
        guard UInt64(part.count) <= remaining else { throw Self.violation("a body longer than announced") }
        guard UInt64(part.count) == remaining else {
            state = .skipsBody(opening, properties, bodySize: bodySize, remaining: remaining - UInt64(part.count))
            return nil
        }
        return switch opening {
        case .deliver(let deliver): .oversized(deliver, properties, bodySize: bodySize)
        case .returned(let returned): .returned(returned, properties, [])
        }
    }

    private static func content(_ opening: Opening, _ properties: AMQPProperties, _ body: [UInt8]) -> Content {
        switch opening {
        case .deliver(let deliver): .delivery(deliver, properties, body)
        case .returned(let returned): .returned(returned, properties, body)
        }
    }

    private static func violation(_ detail: String) -> AMQPError {
        AMQPError(.protocolViolation, operation: "read a message from the broker", detail: detail)
    }
}
