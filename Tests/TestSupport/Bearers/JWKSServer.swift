internal import Synchronization

/// A loopback web server with a JWK set that can change or become unavailable.
package final class JWKSServer: Sendable {
    private final class Page: Sendable {
        let text = Mutex<String?>(nil)
    }

    private let page = Page()
    private let server: ScriptedServer

    /// - Parameter text: The JWK set; `nil` for an unavailable server.
    package init(_ text: String?) throws {
        server = try ScriptedServer { [page] _ in
            guard let text = page.text.withLock({ $0 }) else {
                return .text("HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n")
            }
            return .text("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
        }
        show(text)
    }

    package var url: String { "http://127.0.0.1:\(server.port)/jwks.json" }
    /// The number of requests.
    package var requestCount: Int { server.requests.count }

    package func show(_ text: String?) { page.text.withLock { $0 = text } }
    package func stop() { server.stop() }
}
