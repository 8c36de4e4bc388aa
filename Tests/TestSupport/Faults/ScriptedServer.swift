internal import Foundation
internal import Synchronization

/// A loopback HTTP/1.1 server that sends scripted bytes, valid or not. Serves one request per connection.
package final class ScriptedServer: Sendable {
    package enum Answer: Sendable {
        /// Sends these bytes and closes the connection.
        case text(String)
        /// Sends nothing and keeps the connection open.
        case silence
    }

    package let port: Int

    private let listener: Int32
    private let answer: @Sendable (_ request: String) -> Answer
    private let received = Mutex<[String]>([])
    private let silent = Mutex<[Int32]>([])

    package init(_ answer: @escaping @Sendable (_ request: String) -> Answer) throws {
        (listener, port) = try LoopbackSocket.listen()
        self.answer = answer
        Thread { [self] in accept() }.start()
    }

    /// The received requests: head and body.
    package var requests: [String] { received.withLock { $0 } }

    package func stop() {
        LoopbackSocket.shutDown(listener)
        silent.withLock { for descriptor in $0 { LoopbackSocket.close(descriptor) } }
    }

    private func accept() {
        while let client = LoopbackSocket.accept(listener) {
            Thread { [self] in serve(client) }.start()
        }
        LoopbackSocket.close(listener)
    }

    private func serve(_ client: Int32) {
        var request: [UInt8] = []
        while !Self.isComplete(request), let bytes = LoopbackSocket.read(client) { request += bytes }
        let text = String(decoding: request, as: UTF8.self)
        received.withLock { $0.append(text) }
        switch answer(text) {
        case .text(let response):
            _ = LoopbackSocket.write(Array(response.utf8), to: client)
            LoopbackSocket.close(client)
        case .silence: silent.withLock { $0.append(client) }
        }
    }

    private static func isComplete(_ request: [UInt8]) -> Bool {
        // A TLS handshake. A plain HTTP server sees a bad request.
        if request.first == 0x16 { return true }
        guard let end = request.firstRange(of: Array("\r\n\r\n".utf8)) else { return false }
        let head = String(decoding: request[..<end.lowerBound], as: UTF8.self).lowercased()
        let length = head.firstMatch(of: /content-length: ([0-9]+)/).flatMap { Int($0.1) } ?? 0
        return request.count - end.upperBound >= length
    }
}
