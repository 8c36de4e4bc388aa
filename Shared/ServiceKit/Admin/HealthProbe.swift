import Foundation

/// The `healthcheck` subcommand: probes the process running with the same settings. Images contain no shell or curl, so
/// the binary probes itself.
///
/// Blocks a thread for at most a few seconds.
enum HealthProbe {
    enum ProbeResult: Hashable, Sendable {
        /// The status code and the body.
        case answered(Int, String)
        case unreachable(String)
    }

    private static let timeout = timeval(tv_sec: 3, tv_usec: 0)

    /// Requests `path` on the admin port.
    static func get(host: String, port: Int, path: String) async -> ProbeResult {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: ask(host: host, port: port, path: path)) }
        }
    }

    private static func ask(host: String, port: Int, path: String) -> ProbeResult {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(probeHost(host), String(port), &hints, &list) == 0, let first = list else {
            return .unreachable("the address \(host):\(port) does not resolve")
        }
        defer { freeaddrinfo(first) }
        let descriptor = socket(first.pointee.ai_family, first.pointee.ai_socktype, first.pointee.ai_protocol)
        defer { close(descriptor) }
        var timeout = timeout
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
        guard connect(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0 else {
            return .unreachable("nothing listens on \(host):\(port)")
        }
        return exchange(descriptor, "GET \(path) HTTP/1.1\r\nHost: \(host):\(port)\r\nConnection: close\r\n\r\n")
    }

    /// Returns the host to connect to: the loopback address for a server that listens on all addresses.
    static func probeHost(_ host: String) -> String {
        switch host {
        case "0.0.0.0": "127.0.0.1"
        case "::": "::1"
        default: host
        }
    }

    private static func exchange(_ descriptor: Int32, _ request: String) -> ProbeResult {
        let bytes = Array(request.utf8)
        guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            return .unreachable("sending the request failed")
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

    static func parse(_ text: String) -> ProbeResult {
        let status = text.prefix { $0 != "\r\n" && $0 != "\n" }.split(separator: " ")
        guard status.count >= 2, status[0].hasPrefix("HTTP/"), let code = Int(status[1]) else {
            return .unreachable("no response in time")
        }
        return .answered(code, text.range(of: "\r\n\r\n").map { String(text[$0.upperBound...]) } ?? "")
    }
}
