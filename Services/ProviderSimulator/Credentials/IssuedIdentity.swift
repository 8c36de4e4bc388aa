import Crypto
import FoundationEssentials
import SwiftASN1
import X509

/// A new certificate authority, a server certificate it issued, and certificates that clients must reject. All in PEM.
struct IssuedIdentity: Sendable {
    let authority: String
    let certificate: String
    let key: String
    /// Issued by the authority; expired since yesterday.
    let expired: String
    /// Issued by the authority for another host.
    let misnamed: String
    /// Correct except for its issuer: an unknown authority with the same name.
    let unknown: String
    /// The key of the three certificates above.
    let badKey: String

    static let names = ["localhost", "provider-simulator"]
    static let addresses: [[UInt8]] = [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]]
    /// In seconds: five years.
    private static let validity: TimeInterval = 5 * 365 * 86_400

    init(at now: Date) throws {
        let validity = now.addingTimeInterval(-3600)...now.addingTimeInterval(Self.validity)
        let past = now.addingTimeInterval(-2 * 86_400)...now.addingTimeInterval(-86_400)
        let authority = try Authority(validity: validity)
        let otherAuthority = try Authority(validity: validity)
        let key = P256.Signing.PrivateKey()
        let badKey = P256.Signing.PrivateKey()
        let own = SubjectAlternativeNames(
            Self.names.map { .dnsName($0) }
                + Self.addresses.map { .ipAddress(ASN1OctetString(contentBytes: $0[...])) })
        self.authority = try authority.certificate.serializeAsPEM().pemString + "\n"
        certificate = try authority.issue(to: key, names: own, validity: validity)
        expired = try authority.issue(to: badKey, names: own, validity: past)
        misnamed = try authority.issue(
            to: badKey, names: SubjectAlternativeNames([.dnsName("another.invalid")]), validity: validity)
        unknown = try otherAuthority.issue(to: badKey, names: own, validity: validity)
        self.key = key.pemRepresentation + "\n"
        self.badKey = badKey.pemRepresentation + "\n"
    }
}

/// A certificate authority that is discarded after issuing.
private struct Authority {
    let certificate: Certificate
    private let key = P256.Signing.PrivateKey()
    private let name: DistinguishedName
    private let id: SubjectKeyIdentifier

    init(validity: ClosedRange<Date>) throws {
        name = try DistinguishedName { CommonName("Heliograph Provider Simulator CA") }
        id = SubjectKeyIdentifier(hash: Certificate.PublicKey(key.publicKey))
        let id = id
        certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound, issuer: name, subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                id
            }, issuerPrivateKey: .init(key))
    }

    /// Issues a server certificate in PEM.
    func issue(
        to subject: P256.Signing.PrivateKey, names: SubjectAlternativeNames, validity: ClosedRange<Date>
    ) throws -> String {
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(subject.publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound, issuer: name,
            subject: try DistinguishedName { CommonName("localhost") }, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                try ExtendedKeyUsage([.serverAuth])
                AuthorityKeyIdentifier(keyIdentifier: id.keyIdentifier)
                names
            }, issuerPrivateKey: .init(key))
        return try certificate.serializeAsPEM().pemString + "\n"
    }
}
