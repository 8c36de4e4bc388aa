package import FoundationEssentials
internal import NIOSSL

package enum CertificateFile {
    /// Returns `notAfter` (RFC 5280 §4.1.2.5) of the first certificate in `pem`, the one presented to a peer.
    ///
    /// - Throws: `HTTP2Error.invalidConfiguration` if `pem` contains no certificate; the text quotes no bytes of it.
    package static func expiry(of pem: [UInt8]) throws(HTTP2Error) -> Date {
        let certificates: [NIOSSLCertificate]
        do {
            certificates = try NIOSSLCertificate.fromPEMBytes(pem)
        } catch {
            throw .invalidConfiguration("contains no certificate (PEM, starting with “-----BEGIN CERTIFICATE-----”)")
        }
        guard let first = certificates.first else { throw .invalidConfiguration("contains no certificate") }
        return Date(timeIntervalSince1970: Double(first.notValidAfter))
    }
}
