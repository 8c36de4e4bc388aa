import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import HTTPAuth

@Suite(.timeLimit(.minutes(1))) struct VerificationKeyTests {
    static func keys(_ text: String, _ algorithm: BearerVerification.Algorithm) async throws -> [VerificationKey] {
        try await VerificationKey.keys(in: Array(text.utf8), for: algorithm)
    }

    static func problem(_ text: String, _ algorithm: BearerVerification.Algorithm) async -> String? {
        do {
            _ = try await VerificationKey.keys(in: Array(text.utf8), for: algorithm)
            return nil
        } catch { return "\(error)" }
    }

    static func everyIssuer() async throws -> [(BearerVerification.Algorithm, Issuer)] {
        [
            (.es256, try await .ecdsa("a")), (.rs256, try await .rsa("a")),
            (.hs256, try await .hmac(BearerKeys.secret, "a")),
        ]
    }

    @Test func `PEM or secret, JWK and JWK set yield the same key`() async throws {
        for (algorithm, issuer) in try await Self.everyIssuer() {
            let token = try SignedToken(try issuer.token(["sub": "1"]))
            let single = String(decoding: try WireCoding.encode(issuer.jwk), as: UTF8.self)
            for (text, id) in [(issuer.material, nil), (single, "a"), ("\n " + (try Issuer.set(issuer)), "a")] {
                let keys = try await Self.keys(text, algorithm)
                #expect(keys.map(\.id) == [id])
                #expect(keys[0].hasSigned(token))
            }
        }
    }

    @Test func `keys of a set for other algorithms and uses are ignored`() async throws {
        let issuers = try await Self.everyIssuer()
        for (algorithm, issuer) in issuers {
            let strays: [JSONValue] = [
                ["kty": "OKP", "crv": "Ed25519", "x": "AA"], ["kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"],
                issuer.jwk.merging(["use": "enc"]), issuer.jwk.merging(["alg": "PS256"]),
                issuer.jwk.merging(["key_ops": ["sign"]]),
            ]
            let good = issuer.jwk.merging(["use": "sig", "alg": .string(algorithm.rawValue), "key_ops": ["verify"]])
            let mixed = try Issuer.set(of: strays + issuers.map(\.1.jwk).filter { $0 != issuer.jwk } + [good])
            let keys = try await Self.keys(mixed, algorithm)
            #expect(keys.count == 1)
            let problem = await Self.problem(try Issuer.set(of: strays), algorithm)
            #expect(problem?.contains("contains no key") == true)
        }
    }

    @Test func `an unusable key is rejected with the problem, and not quoted`() async throws {
        let rsa = try await Issuer.rsa()
        let short: JSONValue = ["kty": "oct", "k": "c2hvcnQtc2VjcmV0"]
        let cases: [(String, BearerVerification.Algorithm, String)] = [
            ("short-secret", .hs256, "12 bytes"), ("", .hs256, "0 bytes"),
            (String(repeating: "s", count: 31), .hs256, "31 bytes"),
            (try Issuer.set(of: [short]), .hs256, "12 bytes"),
            (rsa.material, .hs256, "PEM"), (rsa.material, .es256, "ES256"), ("-----BEGIN", .rs256, "RS256"),
            ("{\"keys\":[", .rs256, "not JSON"), ("{\"keys\":[]}", .es256, "no key"),
            (try Issuer.set(of: [["kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"]]), .es256, "ES256"),
            (try Issuer.set(of: [["kty": "RSA", "n": "AQAB", "e": "AQAB"]]), .rs256, "RS256"),
        ]
        for (text, algorithm, word) in cases {
            let problem = try #require(await Self.problem(text, algorithm), "\(word)")
            #expect(problem.contains(word) && !problem.contains("secret-") && !problem.contains("short-"), "\(problem)")
        }
        #expect(await Self.problem(String(repeating: "s", count: 32), .hs256) == nil)
    }

    @Test func `a malformed signature is invalid`() async throws {
        for (algorithm, issuer) in try await Self.everyIssuer() {
            let key = try await Self.keys(issuer.material, algorithm)[0]
            let good = try issuer.token(["sub": "1"])
            let text = good.split(separator: ".").prefix(2).joined(separator: ".")
            for signature in ["", "AA", String(repeating: "A", count: 86), String(repeating: "A", count: 342)] {
                #expect(!key.hasSigned(try SignedToken("\(text).\(signature)")))
            }
            #expect(key.hasSigned(try SignedToken(good)))
        }
    }
}
