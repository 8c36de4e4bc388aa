import Testing

@testable import AMQP

@Suite struct EncodingFaultTests {
    private static func fault(
        exchange: String = "e", key: String = "k", _ properties: AMQPProperties = AMQPProperties()
    ) -> AMQPMessage.EncodingFault? {
        AMQPMessage(exchange: exchange, routingKey: key, properties: properties, body: []).encodingFault
    }

    @Test func `an ordinary message has no encoding fault`() {
        #expect(
            Self.fault(AMQPProperties(messageID: "1", headers: ["a": ["b": 1].table, "c": .array([.void])])) == nil)
    }

    @Test func `short strings end at 255 bytes, not characters`() {
        let long = String(repeating: "ü", count: 128)
        let fits = String(repeating: "a", count: 255)
        #expect(Self.fault(exchange: fits, key: fits, AMQPProperties(messageID: fits)) == nil)
        #expect(Self.fault(exchange: long)?.code == 502)
        #expect(Self.fault(key: long)?.text.contains("routing key is 256 bytes") == true)
        #expect(Self.fault(AMQPProperties(correlationID: long))?.code == 502)
        #expect(Self.fault(AMQPProperties(headers: [long: 1]))?.code == 502)
    }

    @Test func `headers that do not fit in a frame are refused`() {
        let text = String(repeating: "a", count: AMQPMessage.maximumHeaderSize)
        #expect(Self.fault(AMQPProperties(headers: ["a": .text(text)]))?.code == 501)
    }

    @Test func `headers nested too deeply are refused`() {
        var value = AMQPValue.int(1)
        for _ in 0..<AMQPValue.maximumDepth + 1 { value = .array([value]) }
        #expect(Self.fault(AMQPProperties(headers: ["a": value]))?.code == 502)
    }
}

extension Dictionary<String, AMQPValue> {
    fileprivate var table: AMQPValue { .table(self) }
}
