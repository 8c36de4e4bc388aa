package import HTTP2Server
import HTTP2
import Logging
import Synchronization

/// An HTTP/2 provider on its own port. A closure answers; requests are recorded.
package final class FakeProvider: Sendable {
    private final class Log: Sendable {
        let requests = Mutex<[HTTP2ServerRequest]>([])
    }

    private let server: HTTP2Server
    private let log: Log

    private init(_ server: HTTP2Server, _ log: Log) {
        self.server = server
        self.log = log
    }

    /// `https://localhost:<port>`, trusted by the shared test authority.
    package var url: String { "https://localhost:\(server.port)" }
    /// The requests in order of arrival.
    package var requests: [HTTP2ServerRequest] { log.requests.withLock { $0 } }

    package static func start(
        _ answer: @escaping @Sendable (HTTP2ServerRequest) -> [HTTP2ServerStep]
    ) async throws -> FakeProvider {
        let certificates = try TestCertificates.shared()
        let log = Log()
        let server = try await HTTP2Server.start(
            tls: HTTP2ServerTLS(
                certificateFile: certificates.serverCertificateFile, keyFile: certificates.serverKeyFile),
            logger: Logger(label: "test.provider") { _ in SwiftLogNoOpLogHandler() }
        ) { request in
            log.requests.withLock { $0.append(request) }
            return answer(request)
        }
        return FakeProvider(server, log)
    }

    package func stop() async { await server.shutdown() }
}
