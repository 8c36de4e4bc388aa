import FoundationEssentials
import Glibc
import HTTP2
import ServiceKit
import SwiftASN1
import X509

/// The certificate that the provider ports show, and the authority that clients trust it by.
struct ServerIdentity: Sendable {
    let certificateFile: String
    let keyFile: String
    /// What clients are given as their CA file; `nil` for a certificate that was brought along.
    let authorityFile: String?
    /// What is shown to connections that shall not trust it: the bad certificates, all with one key.
    private let badKeyFile: String
    private let expiredFile: String
    private let misnamedFile: String
    private let unknownFile: String

    /// A certificate from files, as it is. Its authority's key is not here, so that bad certificates are by an authority
    /// nobody knows, and are refused for that as well; they lie in `scratch`.
    init(certificateFile: String, keyFile: String, scratch: String, at now: Date = Date()) throws {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        authorityFile = nil
        badKeyFile = scratch + "-bad-key.pem"
        expiredFile = scratch + "-expired.pem"
        misnamedFile = scratch + "-misnamed.pem"
        unknownFile = scratch + "-unknown.pem"
        try writeBad(try IssuedIdentity(at: now))
    }

    private func writeBad(_ issued: IssuedIdentity) throws {
        try Self.write(issued.badKey, to: badKeyFile, permissions: 0o600)
        try Self.write(issued.expired, to: expiredFile, permissions: 0o644)
        try Self.write(issued.misnamed, to: misnamedFile, permissions: 0o644)
        try Self.write(issued.unknown, to: unknownFile, permissions: 0o644)
    }

    /// The identity whose authority lies at `authorityFile`, made now unless an earlier run left a good one: clients that
    /// read the file before a restart still trust what comes after it. The certificate and its key lie beside it; the
    /// authority's key is kept nowhere.
    init(authorityFile: String, at now: Date = Date()) throws {
        let stem = authorityFile.hasSuffix(".pem") ? String(authorityFile.dropLast(4)) : authorityFile
        self.authorityFile = authorityFile
        certificateFile = stem + "-server.pem"
        keyFile = stem + "-server-key.pem"
        badKeyFile = stem + "-bad-key.pem"
        expiredFile = stem + "-expired.pem"
        misnamedFile = stem + "-misnamed.pem"
        unknownFile = stem + "-unknown.pem"
        guard !isUsable(at: now) else { return }
        let issued = try IssuedIdentity(at: now)
        try Self.write(issued.key, to: keyFile, permissions: 0o600)
        try Self.write(issued.certificate, to: certificateFile, permissions: 0o644)
        try writeBad(issued)
        // Last, since whoever waits for the authority may connect as soon as it is there.
        try Self.write(issued.authority, to: authorityFile, permissions: 0o644)
    }

    private func isUsable(at now: Date) -> Bool {
        guard let authorityFile, let authority = Self.certificate(in: authorityFile),
            let certificate = Self.certificate(in: certificateFile),
            let key = (try? String(contentsOfFile: keyFile, encoding: .utf8))
                .flatMap({ try? Certificate.PrivateKey(pemEncoded: $0) })
        else { return false }
        guard [badKeyFile, expiredFile, misnamedFile, unknownFile].allSatisfy(FileManager.default.fileExists) else {
            return false
        }
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

extension ServerIdentity {
    /// What connections are shown as a rule.
    var face: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: certificateFile, keyFile: keyFile) }
    var expiredFace: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: expiredFile, keyFile: badKeyFile) }
    var misnamedFace: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: misnamedFile, keyFile: badKeyFile) }
    var unknownFace: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: unknownFile, keyFile: badKeyFile) }
}
