import Foundation

/// The `healthcheck` subcommand: asks the process that runs with the same settings whether it is ready. Images have no
/// shell and no curl, so the binary asks itself.
///
/// Takes at most a few seconds, on a thread that may block.
enum HealthProbe {
    enum Answer: Hashable, Sendable {
        /// The status code and the body.
        case answered(Int, String)
        case unreachable(String)
    }

    private static let patience = timeval(tv_sec: 3, tv_usec: 0)

    /// `GET path` on the admin port.
    static func get(host: String, port: Int, path: String) async -> Answer {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: ask(host: host, port: port, path: path)) }
        }
    }

    private static func ask(host: String, port: Int, path: String) -> Answer {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(reachable(host), String(port), &hints, &list) == 0, let first = list else {
            return .unreachable("the address \(host):\(port) does not resolve")
        }
        defer { freeaddrinfo(first) }
        let descriptor = socket(first.pointee.ai_family, first.pointee.ai_socktype, first.pointee.ai_protocol)
        defer { close(descriptor) }
        var patience = patience
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        guard connect(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0 else {
            return .unreachable("nothing listens on \(host):\(port)")
        }
        return exchange(descriptor, "GET \(path) HTTP/1.1\r\nHost: \(host):\(port)\r\nConnection: close\r\n\r\n")
    }

    /// A server that listens on every address is asked on the loopback one.
    static func reachable(_ host: String) -> String {
        switch host {
        case "0.0.0.0": "127.0.0.1"
        case "::": "::1"
        default: host
        }
    }

    private static func exchange(_ descriptor: Int32, _ request: String) -> Answer {
        let bytes = Array(request.utf8)
        guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            return .unreachable("the request could not be sent")
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16384)
        while answer.count < 1 << 20 {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            answer.append(contentsOf: buffer[..<count])
        }
        return parse(String(decoding: answer, as: UTF8.self))
    }

    static func parse(_ text: String) -> Answer {
        let status = text.prefix { $0 != "\r\n" && $0 != "\n" }.split(separator: " ")
        guard status.count >= 2, status[0].hasPrefix("HTTP/"), let code = Int(status[1]) else {
            return .unreachable("there was no answer in time")
        }
        return .answered(code, text.range(of: "\r\n\r\n").map { String(text[$0.upperBound...]) } ?? "")
    }
}
