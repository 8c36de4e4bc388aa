import HTTP2Server
import Logging
import Primitives
import Synchronization
import TestSupport

@testable import HTTP2

/// Returns a logger for errors only.
func testLogger() -> Logger {
    var logger = Logger(label: "http2-tests")
    logger.logLevel = .error
    return logger
}

/// A client and a server connected over loopback TLS.
struct Harness {
    let server: HTTP2Server
    let client: HTTP2Client
    let events: EventLog

    /// Sends one request with a default deadline.
    func send(
        _ path: String = "/", headers: [HTTP2Header] = [], body: [UInt8] = Array("{}".utf8),
        deadline: Duration = .seconds(20)
    ) async throws(HTTP2Error) -> HTTP2Response {
        try await client.execute(HTTP2Request(path: path, headers: headers, body: body), deadline: deadline)
    }

    func statistics() async -> HTTP2ClientStatistics { await client.settledStatistics() }

    /// Sends one request and returns its result.
    func outcome(_ path: String, deadline: Duration = .seconds(20)) async -> Result<HTTP2Response, HTTP2Error> {
        do throws(HTTP2Error) {
            return .success(try await send(path, deadline: deadline))
        } catch {
            return .failure(error)
        }
    }

    /// Sends `count` concurrent requests, `/0`, `/1` and so on, and returns their results in that order.
    func sendMany(_ count: Int, deadline: Duration = .seconds(20)) async -> [Result<HTTP2Response, HTTP2Error>] {
        await withTaskGroup(of: (Int, Result<HTTP2Response, HTTP2Error>).self) { group in
            for index in 0..<count {
                group.addTask { (index, await outcome("/\(index)", deadline: deadline)) }
            }
            var outcomes = [Int: Result<HTTP2Response, HTTP2Error>]()
            for await (index, outcome) in group { outcomes[index] = outcome }
            return (0..<count).compactMap { outcomes[$0] }
        }
    }

    static func run<Result>(
        settings: HTTP2ServerSettings = .init(), configuration: HTTP2ClientConfiguration = .testing,
        handler: @escaping @Sendable (HTTP2ServerRequest) async -> [HTTP2ServerStep] = { _ in [.respond(status: 200)] },
        body: (Harness) async throws -> Result
    ) async throws -> Result {
        let certificates = try TestCertificates.shared()
        let events = EventLog()
        let server = try await HTTP2Server.start(
            tls: certificates.serverTLS, settings: settings, logger: testLogger(), events: events.record,
            handler: handler)
        let client = try HTTP2Client(
            endpoint: certificates.endpoint(port: server.port), configuration: configuration, logger: testLogger())
        let result: Result
        do {
            result = try await body(Harness(server: server, client: client, events: events))
        } catch {
            await client.shutdown()
            await server.shutdown()
            throw error
        }
        await client.shutdown()
        await server.shutdown()
        return result
    }
}

extension TestCertificates {
    var serverTLS: HTTP2ServerTLS {
        HTTP2ServerTLS(certificateFile: serverCertificateFile, keyFile: serverKeyFile)
    }

    func endpoint(port: Int, host: String = "localhost") -> HTTP2Endpoint {
        HTTP2Endpoint(host: host, port: port, tls: .init(trust: .certificates(pemFile: authorityFile)))
    }
}

extension HTTP2ClientConfiguration {
    /// The defaults with short connect intervals.
    static var testing: HTTP2ClientConfiguration {
        var configuration = HTTP2ClientConfiguration()
        configuration.connectInterval = .milliseconds(20)
        configuration.connectBackoff = Backoff(base: .milliseconds(20), cap: .milliseconds(50))
        return configuration
    }

    func with(_ change: (inout HTTP2ClientConfiguration) -> Void) -> HTTP2ClientConfiguration {
        var copy = self
        change(&copy)
        return copy
    }
}

extension Result where Success == HTTP2Response, Failure == HTTP2Error {
    var status: Int? { try? get().status }

    var error: HTTP2Error? {
        if case .failure(let error) = self { error } else { nil }
    }
}
