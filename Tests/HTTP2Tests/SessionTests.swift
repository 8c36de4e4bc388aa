import NIOCore
import Testing

@testable import HTTP2

/// Two sessions connected in memory, without a channel.
struct SessionTests {
    @Test func `frames split into single bytes are parsed`() throws {
        let (client, server) = (Peer(), Peer())
        try client.start(.client)
        try server.start(.server)
        client.bodies[1] = OutgoingBody(Array("hello".utf8), isComplete: true)
        let stream = try client.session.submitRequest(hasBody: true) {
            $0.append(":method", "POST"); $0.appendRest()
        }
        #expect(stream == 1)
        try exchange(client, server, pieces: 1)
        #expect(server.received[1] == Array("hello".utf8))
        #expect(server.ended == [1])
        #expect(client.endsSent == [1])
        #expect(server.headers.map(\.name) == [":method", ":scheme", ":authority", ":path", "x-long"])
        #expect(server.headers.last?.value.count == 10_000)
        #expect(server.headers.last?.neverIndexed == true)
    }

    @Test func `the header arena does not grow with the number of requests`() throws {
        let (client, server) = (Peer(), Peer())
        try client.start(.client)
        try server.start(.server)
        try exchange(client, server, pieces: 16_384)
        for round in 0..<500 {
            let stream = try client.session.submitRequest(hasBody: false) {
                $0.append(":method", "GET"); $0.appendRest()
            }
            try exchange(client, server, pieces: 16_384)
            try server.session.submitResponse(stream: stream, hasBody: false) { $0.append(":status", "200") }
            try exchange(server, client, pieces: 16_384)
            #expect(client.session.headerArenaCapacity <= 64 * 1024, "after \(round) requests")
        }
        #expect(client.closed.count == 500)
    }

    @Test func `output is drained in pieces below 64 KiB`() throws {
        let (client, server) = (Peer(), Peer())
        try client.start(.client)
        try server.start(.server)
        try exchange(client, server, pieces: 16_384)
        // nghttp2 frames all bodies after all headers.
        for request in 0..<40 {
            client.bodies[Int32(request * 2 + 1)] = OutgoingBody(Array(repeating: 1, count: 1_500), isComplete: true)
            _ = try client.session.submitRequest(hasBody: true) {
                $0.append(":method", "POST"); $0.appendRest()
            }
        }
        var pieces = 0
        while let output = try client.session.drain() {
            #expect(output.readableBytes < 64 * 1024)
            pieces += 1
            try output.withUnsafeReadableBytes { try server.session.receive($0) }
        }
        #expect(pieces > 1)
        #expect(server.ended.count == 40)
    }

    @Test func `random bytes cause an error or nothing, never a crash`() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            let server = Peer()
            try server.start(.server)
            var noise = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
            noise += (0..<Int.random(in: 0..<400, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            // The session must allow a last drain after any input.
            do { try noise.withUnsafeBytes { try server.session.receive($0) } } catch is SessionError {}
            _ = try server.session.drain()
        }
    }

    private func exchange(_ from: Peer, _ to: Peer, pieces: Int) throws {
        var isQuiet = false
        while !isQuiet {
            isQuiet = true
            for (sender, receiver) in [(from, to), (to, from)] {
                guard var output = try sender.session.drain() else { continue }
                isQuiet = false
                while let piece = output.readSlice(length: min(pieces, output.readableBytes)), piece.readableBytes > 0 {
                    try piece.withUnsafeReadableBytes { try receiver.session.receive($0) }
                }
            }
        }
    }
}

extension HeaderArena {
    fileprivate mutating func appendRest() {
        append(":scheme", "https")
        append(":authority", "example.com")
        append(":path", "/")
        append("x-long", String(repeating: "v", count: 10_000), neverIndexed: true)
    }
}

/// Records its session's events.
private final class Peer: SessionEvents {
    private(set) var session: Session!
    var bodies: [Int32: OutgoingBody] = [:]
    private(set) var headers: [HTTP2Header] = []
    private(set) var received: [Int32: [UInt8]] = [:]
    private(set) var ended: [Int32] = []
    private(set) var endsSent: [Int32] = []
    private(set) var closed: [Int32] = []

    func start(_ role: SessionRole) throws {
        session = try Session(role: role, events: self)
        try session.submitSettings([])
    }

    func headersBegan(stream: Int32) { headers = [] }
    func headerReceived(
        stream: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, neverIndexed: Bool
    ) {
        headers.append(
            HTTP2Header(
                name: String(decoding: name, as: UTF8.self), value: String(decoding: value, as: UTF8.self),
                neverIndexed: neverIndexed))
    }
    func dataReceived(stream: Int32, bytes: UnsafeRawBufferPointer) { received[stream, default: []] += bytes }
    func endStreamReceived(stream: Int32) { ended.append(stream) }
    func settingsReceived() {}
    func pingReceived(acknowledgement: Bool) {}
    func goAwayReceived(_ notice: HTTP2GoAwayNotice) {}
    func bodyOffer(stream: Int32, maximum: Int) -> OutgoingBody.Offer {
        bodies[stream]?.offer(maximum: maximum) ?? .later
    }
    func writeBody(stream: Int32, count: Int, into output: inout ByteBuffer) {
        bodies[stream]?.write(count: count, into: &output)
    }
    func endStreamSending(stream: Int32) { endsSent.append(stream) }
    func headersNotSent(stream: Int32) {}
    func streamClosed(stream: Int32, code: HTTP2ErrorCode) { closed.append(stream) }
}
