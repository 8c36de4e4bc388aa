import Foundation

#if canImport(Glibc)
    import Glibc
    private let stream = Int32(SOCK_STREAM.rawValue)
#else
    import Darwin
    private let stream = SOCK_STREAM
#endif

/// An HTTP server on a free port of this machine. It answers each request with a closure, and closes the connection.
final class StubServer: @unchecked Sendable {
    struct Request: Sendable {
        var method: String
        var path: String
        /// With names in lowercase.
        var headers: [String: String]
        var body: Data

        var json: Any? { try? JSONSerialization.jsonObject(with: body) }
    }

    struct Reply: Sendable {
        var status: Int
        var headers: [String: String] = [:]
        /// The parts of the body, written one after the other.
        var parts: [String] = []

        static func json(_ text: String) -> Reply { json(200, text) }

        static func json(_ status: Int, _ text: String) -> Reply {
            Reply(status: status, headers: ["Content-Type": "application/json"], parts: [text])
        }
    }

    let url: URL
    private let socket: Int32
    private let lock = NSLock()
    private var taken: [Request] = []
    private let answer: @Sendable (Request, Int) -> Reply

    /// - Parameter answer: Gets the request and the number of requests before it.
    init(_ answer: @escaping @Sendable (Request, Int) -> Reply) throws {
        self.answer = answer
        let socket = Self.socket(AF_INET, stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Int32 in
                guard bind(socket, address, length) == 0, listen(socket, 64) == 0 else { return -1 }
                return getsockname(socket, address, &length)
            }
        }
        guard socket >= 0, port == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
        self.socket = socket
        url = URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))")!
        Thread.detachNewThread { [weak self] in
            while true {
                let connection = accept(socket, nil, nil)
                guard connection >= 0 else { return }
                guard let self else { close(connection); return }
                Thread.detachNewThread { self.serve(connection) }
            }
        }
    }

    deinit {
        shutdown(socket, Int32(SHUT_RDWR))
        close(socket)
    }

    /// All requests so far.
    var requests: [Request] { lock.withLock { taken } }

    private static func socket(_ domain: Int32, _ type: Int32, _ protocolNumber: Int32) -> Int32 {
        #if canImport(Glibc)
            Glibc.socket(domain, type, protocolNumber)
        #else
            Darwin.socket(domain, type, protocolNumber)
        #endif
    }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        guard let request = read(connection) else { return }
        let number = lock.withLock {
            taken.append(request)
            return taken.count - 1
        }
        let reply = answer(request, number)
        var head = "HTTP/1.1 \(reply.status) Stub\r\nConnection: close\r\n"
        for (name, value) in reply.headers { head += "\(name): \(value)\r\n" }
        guard write(connection, head + "\r\n") else { return }
        for part in reply.parts { guard write(connection, part) else { return } }
    }

    private func read(_ connection: Int32) -> Request? {
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 4096)
        func more() -> Bool {
            let count = recv(connection, &buffer, buffer.count, 0)
            if count > 0 { data.append(contentsOf: buffer[..<count]) }
            return count > 0
        }
        while data.range(of: Data("\r\n\r\n".utf8)) == nil { guard more() else { return nil } }
        let end = data.range(of: Data("\r\n\r\n".utf8))!
        let lines = String(decoding: data[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].components(separatedBy: " ")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        let length = headers["content-length"].flatMap(Int.init) ?? 0
        while data.count - end.upperBound < length { guard more() else { return nil } }
        return Request(
            method: words[0], path: words[1], headers: headers, body: data[end.upperBound...].prefix(length))
    }

    private func write(_ connection: Int32, _ text: String) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, noSignal) }
            guard count > 0 else { return false }
            bytes = bytes.dropFirst(count)
        }
        return true
    }
}

#if canImport(Glibc)
    private let noSignal = Int32(MSG_NOSIGNAL)
#else
    private let noSignal: Int32 = 0
#endif
