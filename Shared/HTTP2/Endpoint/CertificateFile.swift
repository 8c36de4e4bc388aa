package import FoundationEssentials
internal import NIOSSL

/// A certificate as it lies in a file, PEM.
package enum CertificateFile {
    /// When the first certificate in `pem`, the one that is shown to a peer, ceases to be valid (RFC 5280 §4.1.2.5,
    /// `notAfter`).
    ///
    /// - Throws: `HTTP2Error.invalidConfiguration` for bytes that hold no certificate; the text quotes none of them.
    package static func expiry(of pem: [UInt8]) throws(HTTP2Error) -> Date {
        let certificates: [NIOSSLCertificate]
        do {
            certificates = try NIOSSLCertificate.fromPEMBytes(pem)
        } catch {
            throw .invalidConfiguration("holds no certificate (PEM, beginning with “-----BEGIN CERTIFICATE-----”)")
        }
        guard let first = certificates.first else { throw .invalidConfiguration("holds no certificate") }
        return Date(timeIntervalSince1970: Double(first.notValidAfter))
    }
}
