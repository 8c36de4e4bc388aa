import FoundationEssentials
import Glibc
import HTTP2
import HTTP2Server
import ServiceKit
import SwiftASN1
import X509

/// The certificate of the provider ports, and the authority that issued it.
struct ServerIdentity: Sendable {
    let certificateFile: String
    let keyFile: String
    /// The CA file for clients; `nil` when the certificate came from files.
    let authorityFile: String?
    /// The beginning of the paths of the certificates for handshake faults, which share one key.
    private let stem: String
    private var badKeyFile: String { "\(stem)-bad-key.pem" }
    private var expiredFile: String { "\(stem)-expired.pem" }
    private var misnamedFile: String { "\(stem)-misnamed.pem" }
    private var unknownFile: String { "\(stem)-unknown.pem" }

    /// Loads a certificate from files. Certificates for handshake faults come from an unknown authority, because the
    /// key of the real one is not available; they are written to `scratch`.
    init(certificateFile: String, keyFile: String, scratch: String, at now: Date = Date()) throws {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        authorityFile = nil
        stem = scratch
        try writeBad(try IssuedIdentity(at: now))
    }

    private func writeBad(_ issued: IssuedIdentity) throws {
        try Self.write(issued.badKey, to: badKeyFile, permissions: 0o600)
        try Self.write(issued.expired, to: expiredFile, permissions: 0o644)
        try Self.write(issued.misnamed, to: misnamedFile, permissions: 0o644)
        try Self.write(issued.unknown, to: unknownFile, permissions: 0o644)
    }

    /// Reuses the identity beside `authorityFile`, or makes one. Clients that read the file before a restart still
    /// trust the certificate. The authority's private key is not stored.
    init(authorityFile: String, at now: Date = Date()) throws {
        stem = authorityFile.hasSuffix(".pem") ? String(authorityFile.dropLast(4)) : authorityFile
        self.authorityFile = authorityFile
        certificateFile = stem + "-server.pem"
        keyFile = stem + "-server-key.pem"
        guard !isUsable(at: now) else { return }
        let issued = try IssuedIdentity(at: now)
        try Self.write(issued.key, to: keyFile, permissions: 0o600)
        try Self.write(issued.certificate, to: certificateFile, permissions: 0o644)
        try writeBad(issued)
        // Written last: a client that waits for this file may connect at once.
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
        guard (try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)) != nil
        else {
            throw ConfigurationError(
                "The certificates cannot be written to \(folder); mount a writable folder at /tmp, or set TMPDIR")
        }
        // Written to a draft and renamed: readers see a complete file, and a key with its permissions set.
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
    /// The certificate of ordinary connections.
    var tls: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: certificateFile, keyFile: keyFile) }
    var expiredTLS: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: expiredFile, keyFile: badKeyFile) }
    var misnamedTLS: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: misnamedFile, keyFile: badKeyFile) }
    var unknownAuthorityTLS: HTTP2ServerTLS { HTTP2ServerTLS(certificateFile: unknownFile, keyFile: badKeyFile) }
}
