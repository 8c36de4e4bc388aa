import HTTP2
import HTTP2Server
import Logging
import NIOPosix
import PushSending
import ServiceKit
import Synchronization
import TestSupport

/// An APNs server for tests that control frames. Records requests and connection events.
final class ScriptedAPNs: Sendable {
    private final class Log: Sendable {
        let requests = Mutex<[HTTP2ServerRequest]>([])
        let events = Mutex<[HTTP2ServerEvent]>([])
    }

    let server: HTTP2Server
    private let log: Log

    private init(_ server: HTTP2Server, _ log: Log) {
        self.server = server
        self.log = log
    }

    var url: String { "https://localhost:\(server.port)" }
    var requests: [HTTP2ServerRequest] { log.requests.withLock { $0 } }
    var opened: Int {
        log.events.withLock { $0.count { if case .connectionOpened = $0 { true } else { false } } }
    }
    var closed: [HTTP2ServerConnection] {
        log.events.withLock { events in
            events.compactMap { if case .connectionClosed(let connection) = $0 { connection } else { nil } }
        }
    }

    /// Starts a server. `answer` also receives the number of earlier requests.
    static func start(
        settings: HTTP2ServerSettings = .init(), clientCertificates: HTTP2ServerTLS.ClientCertificates = .ignored,
        _ answer: @escaping @Sendable (HTTP2ServerRequest, Int) async -> [HTTP2ServerStep]
    ) async throws -> ScriptedAPNs {
        let certificates = try TestCertificates.shared()
        let log = Log()
        let server = try await HTTP2Server.start(
            tls: HTTP2ServerTLS(
                certificateFile: certificates.serverCertificateFile, keyFile: certificates.serverKeyFile,
                clientCertificates: clientCertificates),
            settings: settings, logger: .silent,
            events: { event in log.events.withLock { $0.append(event) } }
        ) { request in
            let before = log.requests.withLock { requests in
                requests.append(request)
                return requests.count - 1
            }
            return await answer(request, before)
        }
        return ScriptedAPNs(server, log)
    }

    /// A sender that connects to this server, for the apps of `catalog`.
    func sender(
        _ catalog: AppCatalog, connections: Int = 4, time: VirtualTime = .init(movesTimeOfDay: true),
        revocations: Revocations? = nil,
        logger: Logger = .silent
    ) async throws -> SenderUnderTest {
        try await SenderUnderTest(
            catalog, url: url, authorityFile: try TestCertificates.shared().authorityFile, connections: connections,
            time: time, revocations: revocations, logger: logger)
    }
}
