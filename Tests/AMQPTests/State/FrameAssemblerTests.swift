import Testing

@testable import AMQP

@Suite struct FrameAssemblerTests {
    private static let deliver = Frame.Deliver(
        consumerTag: "c", deliveryTag: 1, redelivered: false, exchange: "e", routingKey: "k")

    @Test func `a body in one frame is assembled`() throws {
        var assembler = FrameAssembler()
        try assembler.begin(Self.deliver)
        #expect(try assembler.header(bodySize: 3, AMQPProperties()) == nil)
        #expect(try assembler.body([1, 2, 3]) == .delivery(Self.deliver, AMQPProperties(), [1, 2, 3]))
    }

    @Test func `a body in several frames is assembled`() throws {
        var assembler = FrameAssembler()
        try assembler.begin(Self.deliver)
        _ = try assembler.header(bodySize: 5, AMQPProperties())
        #expect(try assembler.body([1, 2]) == nil)
        #expect(try assembler.body([3, 4]) == nil)
        #expect(try assembler.body([5]) == .delivery(Self.deliver, AMQPProperties(), [1, 2, 3, 4, 5]))
    }

    @Test func `a message without a body is assembled`() throws {
        var assembler = FrameAssembler()
        try assembler.begin(Self.deliver)
        let content = try assembler.header(bodySize: 0, AMQPProperties())
        #expect(content == .delivery(Self.deliver, AMQPProperties(), []))
        try assembler.begin(Self.deliver)
    }

    @Test func `a huge announced body size reserves little memory`() throws {
        var assembler = FrameAssembler()
        try assembler.begin(Self.deliver)
        #expect(try assembler.header(bodySize: .max, AMQPProperties()) == nil)
        #expect(try assembler.body([1]) == nil)
    }

    @Test func `a body above the limit is dropped and its size is reported`() throws {
        var assembler = FrameAssembler(maximumBody: 512 * 1024)
        let (size, part) = (UInt64(32 << 20), [UInt8](repeating: 1, count: 128 * 1024))
        try assembler.begin(Self.deliver)
        #expect(try assembler.header(bodySize: size, AMQPProperties(messageID: "m")) == nil)
        for _ in 1..<256 { #expect(try assembler.body(part) == nil) }
        let last = try assembler.body(part)
        #expect(last == .oversized(Self.deliver, AMQPProperties(messageID: "m"), bodySize: size))
        // The next message is assembled normally.
        try assembler.begin(Self.deliver)
        _ = try assembler.header(bodySize: 3, AMQPProperties())
        #expect(try assembler.body([1, 2, 3]) == .delivery(Self.deliver, AMQPProperties(), [1, 2, 3]))
    }

    @Test func `frames out of order are refused`() throws {
        var assembler = FrameAssembler()
        #expect(throws: AMQPError.self) { try assembler.body([1]) }
        #expect(throws: AMQPError.self) { try assembler.header(bodySize: 1, AMQPProperties()) }
        try assembler.begin(Self.deliver)
        #expect(throws: AMQPError.self) { try assembler.begin(Self.deliver) }
        _ = try assembler.header(bodySize: 1, AMQPProperties())
        #expect(throws: AMQPError.self) { try assembler.body([1, 2]) }
    }
}
