import Foundation
import JWTKit
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import HTTPAuth

@Suite struct BearerVerifierTests {
    struct Claims: JWTPayload {
        var value: JSONValue
        init(_ value: JSONValue) { self.value = value }
        init(from decoder: any Decoder) throws { value = try JSONValue(from: decoder) }
        func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
        func verify(using algorithm: some JWTAlgorithm) async throws {}
    }

    static func refusal(_ token: String) async throws -> BearerTokenError.Reason? {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let verifier = try await keys.verifier()
        do {
            _ = try await verifier.verify(token)
            return nil
        } catch { return error.reason }
    }

    @Test func `the matching key decides the app, and the user claim the user`() async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let verifier = try await keys.verifier()
        let one = try await verifier.verify(try await BearerKeys.shared([:]))
        #expect(one == Caller(app: AppID(rawValue: "shared")!, user: UserID(rawValue: "456")!))

        let collection = JWTKeyCollection()
        await collection.add(ecdsa: keys.ecdsa)
        let token = try await collection.sign(
            Claims(["uid": 7, "exp": .double(BearerKeys.now.timeIntervalSince1970 + 1)]))
        let other = try await verifier.verify(token)
        #expect(other == Caller(app: AppID(rawValue: "signed")!, user: UserID(rawValue: "7")!))
    }

    @Test func `a token with several audiences is accepted if ours is among them`() async throws {
        #expect(try await Self.refusal(try await BearerKeys.shared(["aud": ["web", "push"]])) == nil)
    }

    @Test func `times, issuer, audience and user are checked, with the configured leeway`() async throws {
        let seconds = Int64(BearerKeys.now.timeIntervalSince1970)
        let cases: [([String: JSONValue?], BearerTokenError.Reason?)] = [
            (["exp": .int(seconds - 29)], nil), (["exp": .int(seconds - 31)], .expired),
            (["exp": .some(nil)], .expired),
            (["exp": "soon"], .expired), (["nbf": .int(seconds + 29)], nil),
            (["nbf": .int(seconds + 31)], .notYetValid), (["nbf": "now"], .notYetValid),
            (["iss": "other"], .wrongIssuer), (["iss": .some(nil)], .wrongIssuer), (["aud": "other"], .wrongAudience),
            (["aud": ["a", "b"]], .wrongAudience), (["sub": .some(nil)], .noUser),
            (["sub": ""], .noUser), (["sub": ["a"]], .noUser),
        ]
        for (changes, expected) in cases {
            #expect(try await Self.refusal(try await BearerKeys.shared(changes)) == expected, "\(changes)")
        }
    }

    @Test func `forged, modified and foreign tokens are rejected as untrusted`() async throws {
        let good = try await BearerKeys.shared([:])
        let parts = good.split(separator: ".").map(String.init)
        let foreign = try await BearerKeys.shared([:], secret: String(repeating: "x", count: 40))
        let other = try await BearerKeys.shared(["sub": "457"]).split(separator: ".")[1]
        let collection = JWTKeyCollection()
        await collection.add(ecdsa: ES256PrivateKey())
        let wrongKey = try await collection.sign(Claims(["uid": "7", "exp": 9_999_999_999]))
        for token in [foreign, wrongKey, "\(parts[0]).\(other).\(parts[2])", "\(parts[0]).\(parts[1]).AAAA"] {
            #expect(try await Self.refusal(token) == .untrusted)
        }
    }

    @Test func `alg none is rejected, and so is a public key used as a shared secret`() async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let verifier = try await keys.verifier()
        let claims = Data(#"{"sub":"456","uid":"456","iss":"issuer","aud":"push","exp":9999999999}"#.utf8)
        let none = "eyJhbGciOiJub25lIn0." + claims.base64EncodedString().replacing("=", with: "") + "."
        await #expect(throws: BearerTokenError(.untrusted)) { try await verifier.verify(none) }

        let confused = JWTKeyCollection()
        await confused.add(hmac: HMACKey(from: keys.ecdsa.publicKey.pemRepresentation), digestAlgorithm: .sha256)
        let token = try await confused.sign(Claims(["uid": "456", "exp": 9_999_999_999]))
        await #expect(throws: BearerTokenError(.untrusted)) { try await verifier.verify(token) }
    }

    @Test(arguments: ["", "x", "a.b", "a.b.c", "a.b.c.d", "....", "e30.e30.e30"])
    func `text other than a signed JWT is malformed`(token: String) async throws {
        #expect(try await Self.refusal(token) == .malformed)
    }

    @Test func `a short secret or a key of another type stops the start with the file's name`()
        async throws
    {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let path = keys.folder.appending(path: "short").path
        try Data("short".utf8).write(to: URL(filePath: path))
        for algorithm in BearerVerification.Algorithm.allCases {
            let catalog = AppCatalog([
                AppConfiguration(
                    id: AppID(rawValue: "a")!, bearer: [BearerVerification(algorithm: algorithm, keys: .file(path))])
            ])
            let error = await #expect(throws: ConfigurationError.self) {
                try await BearerVerifier(catalog, logger: .silent)
            }
            #expect("\(String(describing: error))".contains(path))
        }
    }
}
