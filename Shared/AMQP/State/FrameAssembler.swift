/// Assembles method, header and body frames of one channel into messages. Pure.
struct FrameAssembler {
    /// An assembled message.
    enum Content: Hashable, Sendable {
        case delivery(Frame.Deliver, AMQPProperties, [UInt8])
        case returned(Frame.Return, AMQPProperties, [UInt8])
        /// A delivery whose body exceeds the limit. The body was dropped while it was read.
        case oversized(Frame.Deliver, AMQPProperties, bodySize: UInt64)
    }

    private enum ContentMethod {
        case deliver(Frame.Deliver)
        case returned(Frame.Return)
    }

    private enum State {
        case idle
        case expectsHeader(ContentMethod)
        case expectsBody(ContentMethod, AMQPProperties, body: [UInt8], remaining: UInt64)
        case skipsBody(ContentMethod, AMQPProperties, bodySize: UInt64, remaining: UInt64)
    }

    private var state = State.idle
    private let maximumBody: UInt64

    /// - Parameter maximumBody: The longest body that is kept, in bytes.
    init(maximumBody: Int = .max) { self.maximumBody = UInt64(maximumBody) }

    /// The most bytes reserved because of a header alone.
    private static let trustedReserve: UInt64 = 1 << 20

    mutating func begin(_ deliver: Frame.Deliver) throws(AMQPError) { try begin(.deliver(deliver)) }
    mutating func begin(_ returned: Frame.Return) throws(AMQPError) { try begin(.returned(returned)) }

    private mutating func begin(_ method: ContentMethod) throws(AMQPError) {
        guard case .idle = state else { throw Self.violation("a message began inside another") }
        state = .expectsHeader(method)
    }

    /// Returns the message when its body is empty.
    mutating func header(bodySize: UInt64, _ properties: AMQPProperties) throws(AMQPError) -> Content? {
        guard case .expectsHeader(let method) = state else { throw Self.violation("a header without a method") }
        guard bodySize > 0 else {
            state = .idle
            return Self.content(method, properties, [])
        }
        state =
            bodySize <= maximumBody
            ? .expectsBody(method, properties, body: [], remaining: bodySize)
            : .skipsBody(method, properties, bodySize: bodySize, remaining: bodySize)
        return nil
    }

    /// Returns the message when this was the last part.
    mutating func body(_ part: [UInt8]) throws(AMQPError) -> Content? {
        if case .skipsBody(let method, let properties, let bodySize, let remaining) = state {
            return try skip(part, method, properties, bodySize, remaining)
        }
        guard case .expectsBody(let method, let properties, var body, let remaining) = state else {
            throw Self.violation("a body without a header")
        }
        state = .idle
        guard UInt64(part.count) <= remaining else { throw Self.violation("a body longer than announced") }
        if UInt64(part.count) == remaining {
            if body.isEmpty { return Self.content(method, properties, part) }
            body += part
            return Self.content(method, properties, body)
        }
        if body.isEmpty { body.reserveCapacity(Int(min(remaining, Self.trustedReserve))) }
        body += part
        state = .expectsBody(method, properties, body: body, remaining: remaining - UInt64(part.count))
        return nil
    }

    private mutating func skip(
        _ part: [UInt8], _ method: ContentMethod, _ properties: AMQPProperties, _ bodySize: UInt64, _ remaining: UInt64
    ) throws(AMQPError) -> Content? {
        state = .idle
        guard UInt64(part.count) <= remaining else { throw Self.violation("a body longer than announced") }
        guard UInt64(part.count) == remaining else {
            state = .skipsBody(method, properties, bodySize: bodySize, remaining: remaining - UInt64(part.count))
            return nil
        }
        return switch method {
        case .deliver(let deliver): .oversized(deliver, properties, bodySize: bodySize)
        case .returned(let returned): .returned(returned, properties, [])
        }
    }

    private static func content(_ method: ContentMethod, _ properties: AMQPProperties, _ body: [UInt8]) -> Content {
        switch method {
        case .deliver(let deliver): .delivery(deliver, properties, body)
        case .returned(let returned): .returned(returned, properties, body)
        }
    }

    private static func violation(_ detail: String) -> AMQPError {
        AMQPError(.protocolViolation, operation: "read a message from the broker", detail: detail)
    }
}
