import HTTP2Server
import NIOCore
import NIOPosix
import NIOSSL
import Testing
import TestSupport

@testable import HTTP2

/// Certificate verification and ALPN.
@Suite(.timeLimit(.minutes(2)))
struct TLSTests {
    @Test(arguments: ["localhost", "127.0.0.1"])
    func `a server is verified by its name or its address`(host: String) async throws {
        let certificates = try TestCertificates.shared()
        try await withServer(certificates.serverTLS) { server in
            let outcome = try await request(certificates.endpoint(port: server.port, host: host))
            #expect(outcome.status == 200)
        }
    }

    @Test func `a server with an untrusted certificate is rejected`() async throws {
        let certificates = try TestCertificates.shared()
        let others = try TestCertificates(hosts: ["localhost"])
        defer { try? others.remove() }
        try await withServer(certificates.serverTLS) { server in
            for trust in [HTTP2Endpoint.Trust.certificates(pemFile: others.authorityFile), .system] {
                var endpoint = certificates.endpoint(port: server.port)
                endpoint.tls.trust = trust
                let outcome = try await request(endpoint)
                expect(outcome, .certificateRejected)
            }
        }
    }

    @Test func `a certificate for another host is rejected`() async throws {
        let others = try TestCertificates(hosts: ["elsewhere.example"])
        defer { try? others.remove() }
        try await withServer(others.serverTLS) { server in
            let outcome = try await request(others.endpoint(port: server.port))
            expect(outcome, .certificateRejected)
        }
    }

    @Test func `a server without h2 fails with noHTTP2`() async throws {
        let certificates = try TestCertificates.shared()
        var tls = certificates.serverTLS
        tls.applicationProtocols = ["http/1.1"]
        try await withServer(tls) { server in
            let outcome = try await request(certificates.endpoint(port: server.port))
            expect(outcome, .noHTTP2)
        }
    }

    @Test func `a configured client certificate is presented`() async throws {
        let certificates = try TestCertificates.shared()
        var tls = certificates.serverTLS
        tls.clientCertificates = .optional(caFile: certificates.authorityFile)
        try await withServer(tls) { server in
            var endpoint = certificates.endpoint(port: server.port)
            let without = try await request(endpoint)
            #expect(try without.get().headers["x-certificate"] == "false")
            endpoint.tls.clientCertificate = .init(
                certificateFile: certificates.clientCertificateFile, keyFile: certificates.clientKeyFile)
            let with = try await request(endpoint)
            #expect(try with.get().headers["x-certificate"] == "true")
        }
    }

    @Test func `a server that demands a certificate rejects a client without one`() async throws {
        let certificates = try TestCertificates.shared()
        var tls = certificates.serverTLS
        tls.clientCertificates = .required(caFile: certificates.authorityFile)
        try await withServer(tls) { server in
            let outcome = try await request(certificates.endpoint(port: server.port))
            expect(outcome, .certificateRejected)
        }
    }

    @Test func `a missing certificate file fails the client's init`() throws {
        let endpoint = HTTP2Endpoint(host: "localhost", tls: .init(trust: .certificates(pemFile: "/no/such.pem")))
        #expect(throws: HTTP2Error.self) { try HTTP2Client(endpoint: endpoint, logger: testLogger()) }
    }

    @Test func `a peer silent after TCP connect times out`() async throws {
        let silent = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let endpoint = try TestCertificates.shared().endpoint(port: silent.localAddress?.port ?? 0, host: "127.0.0.1")
        let configuration = HTTP2ClientConfiguration.testing.with { $0.connectTimeout = .milliseconds(100) }
        let outcome = try await request(endpoint, configuration: configuration)
        expect(outcome, .connectTimeout)
        try await silent.close().get()
    }

    @Test func `bytes other than HTTP/2 end only the connection`() async throws {
        let certificates = try TestCertificates.shared()
        let babbler = try await NonHTTP2Server.start(certificates, saying: "HTTP/1.1 400 Bad Request\r\n\r\n")
        let endpoint = certificates.endpoint(port: babbler.localAddress?.port ?? 0)
        let outcome = try await request(endpoint)
        expect(outcome, .connectionLost)
        try await babbler.close().get()
    }

    // MARK: Help

    private func withServer(_ tls: HTTP2ServerTLS, _ body: (HTTP2Server) async throws -> Void) async throws {
        let server = try await HTTP2Server.start(tls: tls, logger: testLogger()) { request in
            [
                .respond(
                    status: 200, headers: [HTTP2Header(name: "x-certificate", value: "\(request.hasClientCertificate)")]
                )
            ]
        }
        do {
            try await body(server)
        } catch {
            await server.shutdown()
            throw error
        }
        await server.shutdown()
    }

    private func request(
        _ endpoint: HTTP2Endpoint, configuration: HTTP2ClientConfiguration = .testing
    ) async throws -> Result<HTTP2Response, HTTP2Error> {
        let client = try HTTP2Client(endpoint: endpoint, configuration: configuration, logger: testLogger())
        let outcome: Result<HTTP2Response, HTTP2Error>
        do throws(HTTP2Error) {
            outcome = .success(try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20)))
        } catch {
            outcome = .failure(error)
        }
        await client.shutdown()
        return outcome
    }

    private func expect(
        _ outcome: Result<HTTP2Response, HTTP2Error>, _ code: HTTP2Failure.Code,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard case .failure(.notProcessed(let failure)) = outcome else {
            Issue.record("\(outcome)", sourceLocation: sourceLocation)
            return
        }
        #expect(failure.code == code, "\(failure)", sourceLocation: sourceLocation)
    }
}
