import HTTPSFetch
import ServiceKit
import TestSupport
import Testing

@testable import HTTPGate

/// Whose key sets are believed.
@Suite(.timeLimit(.minutes(1))) struct KeyTrustTests {
    /// OpenSSL's own server, which answers with a page that is no key set.
    private func trouble(trusting caFile: String?) async throws -> (any Error)? {
        let certificates = try TestCertificates.shared()
        let port = try FreePort.any()
        let server = Command(
            "openssl",
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-www", "-cert", certificates.serverCertificateFile, "-key",
                certificates.serverKeyFile,
            ])
        return try await server.whileRunning {
            try await eventually("the server") { LoopbackPort.isOpen(port) }
            let ring = KeyRing(
                .es256, from: .url("https://127.0.0.1:\(port)/"), fetch: BearerVerifier.fetch(caFile: caFile),
                uptime: { .now }, logger: .silent)
            await ring.refresh()
            return await ring.trouble
        }
    }

    @Test func `a URL of a private authority is read where that authority is trusted`() async throws {
        let read = try await trouble(trusting: TestCertificates.shared().authorityFile)
        #expect(read is UnusableKeys)
        let unread = try await trouble(trusting: nil)
        #expect((unread as? FetchError)?.code == .untrusted)
    }
}
