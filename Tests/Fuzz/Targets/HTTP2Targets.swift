@testable import HTTP2
import Logging
import NIOCore
import NIOEmbedded
import NIOTLS

extension FuzzTarget {
    /// Bytes from a server to a client with three requests. The first byte is the size of the pieces; 0 means one piece.
    static let http2Client = FuzzTarget("http2-client") {
        HTTP2Seeds.all.map { [0] + $0 } + [[5] + HTTP2Seeds.responses]
    } read: { input in
        let client = try FuzzedClient()
        defer { client.end() }
        let size = input.first.map(Int.init) ?? 0
        var rest = input.dropFirst()
        while !rest.isEmpty {
            let piece = size == 0 ? rest : rest.prefix(size)
            rest = rest.dropFirst(piece.count)
            client.read(piece)
        }
    }
}

/// A client with one connection, on an event loop without threads and sockets.
private final class FuzzedClient {
    private static let endpoint = HTTP2Endpoint(host: "localhost", port: 1)
    private static let tls = try? ClientTLS(endpoint: endpoint)

    private let eventLoop = EmbeddedEventLoop()
    private let channel: EmbeddedChannel
    private let core: ClientCore
    private let group = RequestGroup(ThreeRequests(), timeout: .minutes(1))

    init() throws {
        guard let tls = Self.tls else { fatalError("no TLS context") }
        var configuration = HTTP2ClientConfiguration()
        configuration.connectInterval = .seconds(3600)
        configuration.maximumResponseBody = 100
        var logger = Logger(label: "fuzz")
        logger.logLevel = .critical
        let inbox = ClientInbox()
        core = ClientCore(
            endpoint: Self.endpoint, configuration: configuration, tls: tls, inbox: inbox, eventLoop: eventLoop,
            firstStream: nil, logger: logger)
        // Two connections may be opened at once. A third, which would need a socket, is due long after the input.
        guard case .connect(let first) = core.pool.grow(now: .now()) else { fatalError("no connection is due") }
        core.pool.remove(first, now: .uptimeNanoseconds(0), random: 0)
        guard case .connect(let id) = core.pool.grow(now: .now()) else { fatalError("no connection is due") }
        let handler = ClientChannelHandler(id: id, core: core)
        core.connections[id] = handler
        _ = inbox.put(group, maximum: 10)
        core.takeInbox()
        channel = EmbeddedChannel(handler: handler, loop: eventLoop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: "h2"))
    }

    func read(_ bytes: ArraySlice<UInt8>) {
        guard channel.isActive else { return }
        _ = try? channel.writeInbound(ByteBuffer(bytes: bytes))
        while (try? channel.readOutbound(as: ByteBuffer.self)) != nil {}
    }

    /// Ends the connection. Each request must then have a result.
    func end() {
        _ = try? channel.finish(acceptAlreadyClosed: true)
        core.shutDown(eventLoop.makePromise())
        require(group.members.allSatisfy(\.isFinished), "a request has no result after the end of the client")
        _ = group.takeResults()
        try? eventLoop.syncShutdownGracefully()
    }
}

private struct ThreeRequests: HTTP2Requests {
    let count = 3

    func write(_ index: Int, to fields: inout HeaderArena) {
        fields.append(":method", "POST")
        fields.append(":path", "/\(index)")
    }

    func body(_ index: Int) -> [UInt8] { Array(repeating: 1, count: index * 40_000) }
}

/// Frames of RFC 9113 from a server.
enum HTTP2Seeds {
    static let all: [[UInt8]] = [
        responses, settings + frame(3, stream: 1, [0, 0, 0, 7]) + headers(3) + frame(0, flags: 1, stream: 3, []),
        settings + frame(7, [0, 0, 0, 1, 0, 0, 0, 0] + Array(#"{"reason":"Shutdown"}"#.utf8)) + headers(1, end: true),
        settings + frame(8, [0, 0, 0xff, 0xff]) + frame(8, stream: 3, [0, 0, 0xff, 0xff]) + frame(6, Array(1...8))
            + frame(4, [0, 3, 0, 0, 0, 1, 0, 4, 0, 0, 0, 9]) + frame(4, flags: 1, []),
        settings + frame(1, stream: 1, [0x88]) + frame(9, flags: 4, stream: 1, literal("apns-id", "x"))
            + frame(0, flags: 8, stream: 1, [2] + Array("padded".utf8) + [0, 0]),
        settings + headers(1) + frame(0, stream: 1, Array(repeating: 0x7b, count: 300)),
    ]

    static let responses =
        settings + frame(4, flags: 1, []) + headers(1) + frame(0, flags: 1, stream: 1, Array("{}".utf8))
        + headers(3, end: true) + headers(5, end: true)

    private static let settings = frame(4, [0, 3, 0, 0, 3, 0xe8])

    /// Status 200 and two fields.
    private static func headers(_ stream: Int, end: Bool = false) -> [UInt8] {
        let block = [0x88] + literal("apns-id", "550e8400-e29b-41d4-a716-446655440000") + literal("retry-after", "9")
        return frame(1, flags: end ? 5 : 4, stream: stream, block)
    }

    /// A literal field without indexing (RFC 7541 §6.2.2).
    private static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
    }

    private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8]) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xff), type, flags, 0, 0, 0, UInt8(stream)] + payload
    }
}
