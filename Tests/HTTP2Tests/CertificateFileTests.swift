import Foundation
import HTTP2
import Testing
import TestSupport

@Suite struct CertificateFileTests {
    private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

    @Test func `the expiry of a certificate is read`() throws {
        let certificates = try TestCertificates.shared()
        // The test certificates are valid for two days.
        let expiry = try CertificateFile.expiry(of: try bytes(certificates.clientCertificateFile))
        let left = expiry.timeIntervalSinceNow
        #expect(left > 86_400 && left <= 2 * 86_400, "\(left) s")
    }

    @Test func `the first certificate of a chain decides the expiry`() throws {
        let certificates = try TestCertificates.shared()
        let leaf = try bytes(certificates.clientCertificateFile)
        #expect(
            try CertificateFile.expiry(of: leaf + (try bytes(certificates.authorityFile)))
                == CertificateFile.expiry(of: leaf))
    }

    @Test func `bytes without a certificate are rejected, and not quoted`() throws {
        let key = try bytes(try TestCertificates.shared().clientKeyFile)
        for bytes in [[], Array("secret".utf8), key] {
            let error = #expect(throws: HTTP2Error.self) { try CertificateFile.expiry(of: bytes) }
            #expect(!"\(error!)".contains("secret") && "\(error!)".contains("certificate"))
        }
    }
}
