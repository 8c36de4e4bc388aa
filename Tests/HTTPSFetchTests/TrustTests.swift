import Foundation
import Testing
import TestSupport

@testable import HTTPSFetch

@Suite(.timeLimit(.minutes(1))) struct TrustTests {
    /// Runs OpenSSL's `s_server` and calls `body` with its URL once it listens.
    private func withTLSServer(
        _ certificates: TestCertificates, options: [String] = [], _ body: (String) async throws -> Void
    ) async throws {
        let port = try FreePort.any()
        let server = Command(
            "openssl",
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-www", "-cert", certificates.serverCertificateFile, "-key",
                certificates.serverKeyFile,
            ] + options)
        try await server.whileRunning {
            try await eventually("the server") { LoopbackPort.isOpen(port) }
            try await body("https://127.0.0.1:\(port)/")
        }
    }

    private func expectUntrusted(_ fetch: HTTPSFetch, _ url: String) async {
        let error = await #expect(throws: FetchError.self) { try await fetch.send(FetchRequest(url: url)) }
        #expect(error?.code == .untrusted, "\(String(describing: error))")
    }

    @Test func `a server with a trusted authority is accepted`() async throws {
        let certificates = try TestCertificates.shared()
        try await withTLSServer(certificates) { url in
            let response = try await HTTPSFetch(caFile: certificates.authorityFile).send(FetchRequest(url: url))
            #expect(response.status == 200)
        }
    }

    @Test func `an authority unknown to the system is rejected`() async throws {
        try await withTLSServer(TestCertificates.shared()) { url in await expectUntrusted(HTTPSFetch(), url) }
    }

    @Test func `another authority than the configured one is rejected`() async throws {
        let other = try TestCertificates(hosts: ["127.0.0.1"])
        defer { try? other.remove() }
        try await withTLSServer(TestCertificates.shared()) { url in
            await expectUntrusted(HTTPSFetch(caFile: other.authorityFile), url)
        }
    }

    @Test func `a certificate for another host is rejected`() async throws {
        let elsewhere = try TestCertificates(hosts: ["elsewhere.example"])
        defer { try? elsewhere.remove() }
        try await withTLSServer(elsewhere) { url in
            await expectUntrusted(HTTPSFetch(caFile: elsewhere.authorityFile), url)
        }
    }

    @Test func `TLS below 1.2 is rejected`() async throws {
        let certificates = try TestCertificates.shared()
        try await withTLSServer(certificates, options: ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]) { url in
            await expectUntrusted(HTTPSFetch(caFile: certificates.authorityFile), url)
        }
    }

    @Test func `TLS 1.2 is accepted`() async throws {
        let certificates = try TestCertificates.shared()
        try await withTLSServer(certificates, options: ["-tls1_2"]) { url in
            let response = try await HTTPSFetch(caFile: certificates.authorityFile).send(FetchRequest(url: url))
            #expect(response.status == 200)
        }
    }

    @Test func `there is no fallback to plain http`() async throws {
        try await withServer({ _ in .text("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }) { server, _ in
            await expectUntrusted(HTTPSFetch(), "https://127.0.0.1:\(server.port)/")
        }
    }

    @Test func `a missing CA file is reported`() async throws {
        try await withTLSServer(TestCertificates.shared()) { url in
            let error = await #expect(throws: FetchError.self) {
                try await HTTPSFetch(caFile: "/nowhere.pem").send(FetchRequest(url: url))
            }
            #expect(error?.code == .invalidConfiguration)
        }
    }
}
