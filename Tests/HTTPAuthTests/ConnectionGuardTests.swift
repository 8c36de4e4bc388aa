import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import HTTPAuth

@Suite struct ConnectionGuardTests {
    private static func channel(_ open: ConnectionCounter, limit: Int = 2) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: ConnectionGuard(open, limit: limit, timeout: .seconds(30)))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    private static let head = HTTPRequestPart.head(
        HTTPRequest(method: .post, scheme: "http", authority: "a", path: "/"))

    @Test func `a client without a complete request head is disconnected after the time-out`() throws {
        let channel = try Self.channel(ConnectionCounter())
        channel.embeddedEventLoop.advanceTime(by: .seconds(29))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }

    @Test func `a slowly sent body does not extend the time-out`() throws {
        let channel = try Self.channel(ConnectionCounter())
        try channel.writeInbound(Self.head)
        for _ in 0..<29 {
            channel.embeddedEventLoop.advanceTime(by: .seconds(1))
            try channel.writeInbound(HTTPRequestPart.body(ByteBuffer(string: "x")))
        }
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }

    @Test func `the time-out does not apply to responses, and restarts for the next request`()
        throws
    {
        let channel = try Self.channel(ConnectionCounter())
        for _ in 0..<3 {
            try channel.writeInbound(Self.head)
            try channel.writeInbound(HTTPRequestPart.end(nil))
            channel.embeddedEventLoop.advanceTime(by: .seconds(600))
            #expect(channel.isActive)
        }
        try channel.writeInbound(Self.head)
        channel.embeddedEventLoop.advanceTime(by: .seconds(30))
        #expect(!channel.isActive)
    }

    @Test func `a connection above the limit gets 503 at its first request, until others close`() throws {
        let open = ConnectionCounter()
        let served = [try Self.channel(open), try Self.channel(open)]
        let refused = try Self.channel(open)
        #expect(open.number == 3)
        try refused.writeInbound(Self.head)
        let passed = try refused.readInbound(as: HTTPRequestPart.self)
        #expect(passed == nil)
        guard case .head(let head)? = try refused.readOutbound(as: HTTPResponsePart.self) else {
            Issue.record("no response")
            return
        }
        #expect(head.status == .serviceUnavailable && head.headerFields[.retryAfter] == "2")
        #expect(!refused.isActive && open.number == 2)
        for channel in served {
            try channel.writeInbound(Self.head)
            let part = try channel.readInbound(as: HTTPRequestPart.self)
            #expect(part != nil)
        }
        _ = try served[0].finish()
        #expect(open.number == 1)
        let next = try Self.channel(open)
        try next.writeInbound(Self.head)
        let part = try next.readInbound(as: HTTPRequestPart.self)
        #expect(part != nil)
    }

    @Test func `a connection above the overflow limit is closed at once`() throws {
        let open = ConnectionCounter()
        let all = try (0..<ConnectionGuard.overflowLimit + 1).map { _ in try Self.channel(open, limit: 1) }
        let active = all.filter { $0.isActive }
        #expect(active.count == all.count)
        let next = try Self.channel(open, limit: 1)
        #expect(!next.isActive)
        #expect(open.number == all.count)
        for channel in all { _ = try channel.finish() }
    }
}
