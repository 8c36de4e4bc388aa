import FoundationEssentials
import HTTP2
import PushSending
import SwiftASN1
import X509

/// The expiry and topics of an APNs push certificate (ProviderFacts.md §A.8).
struct PushCertificate: Hashable, Sendable {
    let expiresAt: Date
    /// The topics in Apple's extension; `nil` without one.
    let topics: Set<String>?

    /// Reads the first certificate in `pem`. Errors name `file`.
    init(pem: [UInt8], file: String) throws(CredentialError) {
        do throws(HTTP2Error) {
            expiresAt = try CertificateFile.expiry(of: pem)
        } catch {
            throw .refused(reason: "\(file): \(error)")
        }
        topics = Self.topics(in: pem)
    }

    /// Apple's extension for topics: strings, each followed by a list of kinds.
    private static let topicsExtension: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 3, 6]
    private static let olderTopicsExtension: ASN1ObjectIdentifier = [1, 2, 840, 113_635, 100, 6, 3, 4]

    private static func topics(in pem: [UInt8]) -> Set<String>? {
        // Ignores an unreadable certificate here; TLS reports it.
        guard let documents = try? PEMDocument.parseMultiple(pemString: String(decoding: pem, as: UTF8.self)),
            let first = documents.first(where: { $0.discriminator == "CERTIFICATE" }),
            let certificate = try? Certificate(derEncoded: first.derBytes)
        else { return nil }
        for identifier in [topicsExtension, olderTopicsExtension] {
            guard let found = certificate.extensions.first(where: { $0.oid == identifier }) else { continue }
            let texts = topLevelTexts(found.value)
            if !texts.isEmpty { return texts }
        }
        return nil
    }

    private static func topLevelTexts(_ der: ArraySlice<UInt8>) -> Set<String> {
        guard let root = try? DER.parse(der), case .constructed(let members) = root.content else { return [] }
        return Set(members.compactMap { try? String(ASN1UTF8String(derEncoded: $0)) })
    }
}
