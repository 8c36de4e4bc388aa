import HTTPSFetch
import ServiceKit
import Testing
import TestSupport

@testable import HTTPAuth

/// Certificate verification of key set URLs.
@Suite(.timeLimit(.minutes(1))) struct KeyTrustTests {
    /// Returns the error of fetching keys from OpenSSL's `s_server`, which serves a page other than a key set.
    private func lastError(trusting caFile: String?) async throws -> (any Error)? {
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
            let ring = KeyCache(
                .es256, from: .url("https://127.0.0.1:\(port)/"), fetch: BearerVerifier.fetch(caFile: caFile),
                uptime: { .now }, logger: .silent)
            await ring.refresh()
            return await ring.lastError
        }
    }

    @Test func `a URL with a private certificate authority is read if the authority is trusted`() async throws {
        let read = try await lastError(trusting: TestCertificates.shared().authorityFile)
        #expect(read is KeyMaterialError)
        let unread = try await lastError(trusting: nil)
        #expect((unread as? FetchError)?.code == .untrusted)
    }
}
