import Crypto
import FoundationEssentials
import Glibc
import ServiceKit
import SwiftASN1
import X509

/// The certificate that the provider ports show, and the authority that clients trust it by.
struct ServerIdentity: Sendable {
    let certificateFile: String
    let keyFile: String
    /// What clients are given as their CA file; `nil` for a certificate that was brought along.
    let authorityFile: String?

    /// A certificate from files, as it is.
    init(certificateFile: String, keyFile: String) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        authorityFile = nil
    }

    /// The identity whose authority lies at `authorityFile`, made now unless an earlier run left a good one: clients that
    /// read the file before a restart still trust what comes after it. The certificate and its key lie beside it; the
    /// authority's key is kept nowhere.
    init(authorityFile: String, at now: Date = Date()) throws {
        let stem = authorityFile.hasSuffix(".pem") ? String(authorityFile.dropLast(4)) : authorityFile
        self.authorityFile = authorityFile
        certificateFile = stem + "-server.pem"
        keyFile = stem + "-server-key.pem"
        guard !isUsable(at: now) else { return }
        let issued = try IssuedIdentity(at: now)
        try Self.write(issued.key, to: keyFile, permissions: 0o600)
        try Self.write(issued.certificate, to: certificateFile, permissions: 0o644)
        // Last, since whoever waits for the authority may connect as soon as it is there.
        try Self.write(issued.authority, to: authorityFile, permissions: 0o644)
    }

    private func isUsable(at now: Date) -> Bool {
        guard let authorityFile, let authority = Self.certificate(in: authorityFile),
            let certificate = Self.certificate(in: certificateFile),
            let key = (try? String(contentsOfFile: keyFile, encoding: .utf8))
                .flatMap({ try? Certificate.PrivateKey(pemEncoded: $0) })
        else { return false }
        return key.publicKey == certificate.publicKey
            && authority.publicKey.isValidSignature(certificate.signature, for: certificate)
            && certificate.notValidAfter > now.addingTimeInterval(86_400)
    }

    private static func certificate(in file: String) -> Certificate? {
        (try? String(contentsOfFile: file, encoding: .utf8)).flatMap { try? Certificate(pemEncoded: $0) }
    }

    private static func write(_ text: String, to file: String, permissions: Int) throws {
        let folder = URL(filePath: file).deletingLastPathComponent().path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // Moved into place, so that nobody reads half of it, or a key before its permissions are set.
        let draft = "\(file).\(UUID().uuidString)"
        guard
            FileManager.default.createFile(
                atPath: draft, contents: Data(text.utf8), attributes: [.posixPermissions: permissions])
        else { throw ConfigurationError("SIMULATOR_CA_FILE: \(file) cannot be written") }
        guard rename(draft, file) == 0 else {
            throw ConfigurationError("SIMULATOR_CA_FILE: \(file) cannot be replaced")
        }
    }
}

/// A new authority and a certificate by it, for the names the simulator goes by, in PEM.
struct IssuedIdentity: Sendable {
    let authority: String
    let certificate: String
    let key: String

    static let names = ["localhost", "provider-simulator"]
    static let addresses: [[UInt8]] = [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]]
    /// In seconds: five years.
    private static let validity: TimeInterval = 5 * 365 * 86_400

    init(at now: Date) throws {
        let authorityKey = P256.Signing.PrivateKey()
        let key = P256.Signing.PrivateKey()
        let issuer = try DistinguishedName { CommonName("Heliograph Provider Simulator CA") }
        let subject = try DistinguishedName { CommonName("localhost") }
        let validity = now.addingTimeInterval(-3600)...now.addingTimeInterval(Self.validity)
        let alternatives = SubjectAlternativeNames(
            Self.names.map { .dnsName($0) }
                + Self.addresses.map { .ipAddress(ASN1OctetString(contentBytes: $0[...])) })
        let authorityID = SubjectKeyIdentifier(hash: Certificate.PublicKey(authorityKey.publicKey))
        let authority = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(authorityKey.publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound, issuer: issuer, subject: issuer,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                authorityID
            }, issuerPrivateKey: .init(authorityKey))
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound, issuer: issuer, subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                try ExtendedKeyUsage([.serverAuth])
                AuthorityKeyIdentifier(keyIdentifier: authorityID.keyIdentifier)
                alternatives
            }, issuerPrivateKey: .init(authorityKey))
        self.authority = try authority.serializeAsPEM().pemString + "\n"
        self.certificate = try certificate.serializeAsPEM().pemString + "\n"
        self.key = key.pemRepresentation + "\n"
    }
}
