import Foundation
import JWTKit
import PushProtocol
import ServiceKit
import TestSupport
import Testing

@testable import TokenRegistry

@Suite struct BearerVerifierTests {
    static let now = Date(timeIntervalSince1970: 1_767_225_600)
    static let secret = "a-shared-secret-of-thirty-two-bytes-at-least"

    /// A catalog with an HS256 key for one app and an ES256 key for another, in files of its own.
    struct Keys {
        let folder: URL
        let ecdsa = ES256PrivateKey()

        init() throws {
            folder = FileManager.default.temporaryDirectory.appending(path: "bearer-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data("\(BearerVerifierTests.secret)\n".utf8).write(to: folder.appending(path: "secret"))
            try Data(ecdsa.publicKey.pemRepresentation.utf8).write(to: folder.appending(path: "public.pem"))
        }

        var catalog: AppCatalog {
            AppCatalog([
                AppConfiguration(
                    id: AppID(rawValue: "shared")!,
                    bearer: [
                        BearerVerification(
                            algorithm: .hs256, keyFile: folder.appending(path: "secret").path, issuer: "issuer",
                            audience: "push")
                    ]),
                AppConfiguration(
                    id: AppID(rawValue: "signed")!,
                    bearer: [
                        BearerVerification(
                            algorithm: .es256, keyFile: folder.appending(path: "public.pem").path, userClaim: "uid")
                    ]),
            ])
        }

        func verifier() async throws -> BearerVerifier {
            try await BearerVerifier(catalog, now: { BearerVerifierTests.now }, logger: .silent)
        }

        func remove() { try? FileManager.default.removeItem(at: folder) }
    }

    struct Claims: JWTPayload {
        var value: JSONValue
        init(_ value: JSONValue) { self.value = value }
        init(from decoder: any Decoder) throws { value = try JSONValue(from: decoder) }
        func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
        func verify(using algorithm: some JWTAlgorithm) async throws {}
    }

    static let good: [String: JSONValue] = [
        "sub": "456", "iss": "issuer", "aud": "push", "exp": .int(Int64(now.timeIntervalSince1970) + 60),
    ]

    static func shared(_ changes: [String: JSONValue?], secret: String = secret) async throws -> String {
        let claims = good.merging(changes.compactMapValues { $0 }) { $1 }.filter {
            changes[$0.key, default: .null] != nil
        }
        let keys = JWTKeyCollection()
        await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
        return try await keys.sign(Claims(.object(claims)))
    }

    static func refusal(_ token: String) async throws -> BearerRefusal.Reason? {
        let keys = try Keys()
        defer { keys.remove() }
        let verifier = try await keys.verifier()
        do {
            _ = try await verifier.verify(token)
            return nil
        } catch { return error.reason }
    }

    @Test func `the key that fits decides the app, and its claim the user`() async throws {
        let keys = try Keys()
        defer { keys.remove() }
        let verifier = try await keys.verifier()
        let one = try await verifier.verify(try await Self.shared([:]))
        #expect(one == Caller(app: AppID(rawValue: "shared")!, user: UserID(rawValue: "456")!))

        let collection = JWTKeyCollection()
        await collection.add(ecdsa: keys.ecdsa)
        let token = try await collection.sign(Claims(["uid": 7, "exp": .double(Self.now.timeIntervalSince1970 + 1)]))
        let other = try await verifier.verify(token)
        #expect(other == Caller(app: AppID(rawValue: "signed")!, user: UserID(rawValue: "7")!))
    }

    @Test func `a token with several audiences is taken when ours is among them`() async throws {
        #expect(try await Self.refusal(try await Self.shared(["aud": ["web", "push"]])) == nil)
    }

    @Test func `times, issuer, audience and user are each checked, with the configured leeway`() async throws {
        let seconds = Int64(Self.now.timeIntervalSince1970)
        let cases: [([String: JSONValue?], BearerRefusal.Reason?)] = [
            (["exp": .int(seconds - 29)], nil), (["exp": .int(seconds - 31)], .expired),
            (["exp": .some(nil)], .expired),
            (["exp": "soon"], .expired), (["nbf": .int(seconds + 29)], nil),
            (["nbf": .int(seconds + 31)], .notYetValid), (["nbf": "now"], .notYetValid),
            (["iss": "other"], .wrongIssuer), (["iss": .some(nil)], .wrongIssuer), (["aud": "other"], .wrongAudience),
            (["aud": ["a", "b"]], .wrongAudience), (["sub": .some(nil)], .noUser),
            (["sub": ""], .noUser), (["sub": ["a"]], .noUser),
        ]
        for (changes, expected) in cases {
            #expect(try await Self.refusal(try await Self.shared(changes)) == expected, "\(changes)")
        }
    }

    @Test func `a forged, a tampered and a foreign token are not trusted`() async throws {
        let good = try await Self.shared([:])
        let parts = good.split(separator: ".").map(String.init)
        let foreign = try await Self.shared([:], secret: String(repeating: "x", count: 40))
        let other = try await Self.shared(["sub": "457"]).split(separator: ".")[1]
        let collection = JWTKeyCollection()
        await collection.add(ecdsa: ES256PrivateKey())
        let wrongKey = try await collection.sign(Claims(["uid": "7", "exp": 9_999_999_999]))
        for token in [foreign, wrongKey, "\(parts[0]).\(other).\(parts[2])", "\(parts[0]).\(parts[1]).AAAA"] {
            #expect(try await Self.refusal(token) == .untrusted)
        }
    }

    @Test func `alg none is refused, and so is a public key used as a shared secret`() async throws {
        let keys = try Keys()
        defer { keys.remove() }
        let verifier = try await keys.verifier()
        let claims = Data(#"{"sub":"456","uid":"456","iss":"issuer","aud":"push","exp":9999999999}"#.utf8)
        let none = "eyJhbGciOiJub25lIn0." + claims.base64EncodedString().replacing("=", with: "") + "."
        await #expect(throws: BearerRefusal(.untrusted)) { try await verifier.verify(none) }

        let confused = JWTKeyCollection()
        await confused.add(hmac: HMACKey(from: keys.ecdsa.publicKey.pemRepresentation), digestAlgorithm: .sha256)
        let token = try await confused.sign(Claims(["uid": "456", "exp": 9_999_999_999]))
        await #expect(throws: BearerRefusal(.untrusted)) { try await verifier.verify(token) }
    }

    @Test(arguments: ["", "x", "a.b", "a.b.c", "a.b.c.d", "....", "e30.e30.e30"])
    func `what is no signed token is malformed`(token: String) async throws {
        #expect(try await Self.refusal(token) == .malformed)
    }

    @Test func `a secret that is too short, or a key of another kind, stops the start with the file's name`()
        async throws
    {
        let keys = try Keys()
        defer { keys.remove() }
        let path = keys.folder.appending(path: "short").path
        try Data("short".utf8).write(to: URL(filePath: path))
        for algorithm in BearerVerification.Algorithm.allCases {
            let catalog = AppCatalog([
                AppConfiguration(
                    id: AppID(rawValue: "a")!, bearer: [BearerVerification(algorithm: algorithm, keyFile: path)])
            ])
            let error = await #expect(throws: ConfigurationError.self) {
                try await BearerVerifier(catalog, logger: .silent)
            }
            #expect("\(String(describing: error))".contains(path))
        }
    }
}
