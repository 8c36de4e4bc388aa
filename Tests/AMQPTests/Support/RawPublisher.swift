import Foundation
import TestSupport

/// A minimal AMQP publisher for messages that ``AMQPPublisher`` refuses.
enum RawPublisher {
    struct RawPublisherError: Error {}

    /// Publishes an empty message to `queue` with tables nested `headerLevels` deep in one header.
    static func publish(queue: String, headerLevels: Int) async throws {
        guard let url = URLComponents(string: try RealBroker.url()), let user = url.user, let password = url.password
        else { throw RawPublisherError() }
        let socket = try RawSocket(port: url.port ?? 5672)
        let virtualHost = String(url.path.dropFirst())
        socket.write(Array("AMQP".utf8) + [0, 0, 9, 1])
        try socket.await(10, 10)  // connection.start
        let response = [0] + Array(user.utf8) + [0] + Array(password.utf8)
        socket.method(0, 10, 11, long([]) + short("PLAIN") + long(response) + short("en_US"))
        try socket.await(10, 30)  // connection.tune
        socket.method(0, 10, 31, [0, 8] + be32(131_072) + [0, 0])
        socket.method(0, 10, 40, short(virtualHost.isEmpty ? "/" : virtualHost) + [0, 0])
        try socket.await(10, 41)  // connection.open-ok
        socket.method(1, 20, 10, [0])
        try socket.await(20, 11)  // channel.open-ok
        socket.method(1, 60, 40, [0, 0] + short("") + short(queue) + [0])
        let headers = long(nested(headerLevels))
        socket.frame(2, 1, [0, 60, 0, 0] + [UInt8](repeating: 0, count: 8) + [0x20, 0] + headers)
        socket.method(1, 20, 40, [0, 200] + short("") + [0, 0, 0, 0])
        try socket.await(20, 41)  // channel.close-ok: the broker has taken what came before
    }

    /// Nested tables, each with one entry with an empty name.
    private static func nested(_ levels: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for level in stride(from: levels, to: 0, by: -1) {
            bytes += [0, UInt8(ascii: "F")] + be32((level - 1) * 6)
        }
        return bytes
    }

    private static func be32(_ number: Int) -> [UInt8] {
        (0..<4).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func short(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }
    private static func long(_ bytes: [UInt8]) -> [UInt8] { be32(bytes.count) + bytes }
}

/// A blocking loopback socket that reads and writes AMQP frames.
private final class RawSocket {
    private let descriptor: Int32

    init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw RawPublisher.RawPublisherError() }
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest.removeFirst(count)
        }
    }

    func frame(_ type: UInt8, _ channel: UInt8, _ payload: [UInt8]) {
        let size = (0..<4).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
        write([type, 0, channel] + size + payload + [0xCE])
    }

    func method(_ channel: UInt8, _ classID: UInt8, _ methodID: UInt8, _ arguments: [UInt8]) {
        frame(1, channel, [0, classID, 0, methodID] + arguments)
    }

    /// Reads frames until this method arrives.
    func await(_ classID: UInt8, _ methodID: UInt8) throws {
        while true {
            let head = try read(7)
            let size = head[3..<7].reduce(0) { $0 << 8 | Int($1) }
            let payload = try read(size + 1)
            if head[0] == 1, payload[1] == classID, payload[3] == methodID { return }
            if head[0] == 1, payload[3] == 50 || payload[1] == 20 && payload[3] == 40 {
                throw RawPublisher.RawPublisherError()
            }
        }
    }

    private func read(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = recv(descriptor, &bytes, count, Int32(MSG_WAITALL))
        guard got == count else { throw RawPublisher.RawPublisherError() }
        return bytes
    }
}
