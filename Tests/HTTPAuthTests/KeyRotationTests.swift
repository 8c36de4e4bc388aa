import Foundation
import Logging
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import HTTPAuth

/// Key rotation at a URL and in a file while the service runs.
@Suite(.timeLimit(.minutes(1))) struct KeyRotationTests {
    static let claims: JSONValue = [
        "sub": "456", "aud": "push", "exp": .int(Int64(Date().timeIntervalSince1970) + 3600),
    ]

    static func verifier(
        _ keys: BearerVerification.KeySource, _ uptime: ManualClock, _ log: CapturingLogger = CapturingLogger()
    ) async throws -> BearerVerifier {
        let bearer = BearerVerification(algorithm: .es256, keys: keys, audience: "push")
        return try await BearerVerifier(
            AppCatalog([AppConfiguration(id: AppID(rawValue: "portal")!, bearer: [bearer])]),
            uptime: { uptime.now }, logger: log.logger)
    }

    /// Runs `body` with a JWK set server and a verifier of its keys.
    static func withSite(
        _ text: String?, _ body: (JWKSServer, ManualClock, CapturingLogger, BearerVerifier) async throws -> Void
    ) async throws {
        let site = try JWKSServer(text)
        defer { site.stop() }
        let (uptime, log) = (ManualClock(), CapturingLogger())
        try await body(site, uptime, log, try await verifier(.url(site.url), uptime, log))
    }

    static func refusal(_ verifier: BearerVerifier, _ issuer: Issuer) async throws -> BearerTokenError.Reason? {
        let token = try issuer.token(claims)
        do {
            _ = try await verifier.verify(token)
            return nil
        } catch { return error.reason }
    }

    @Test func `a new key at the URL is fetched when a token has its kid, and the old key stays valid`() async throws {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            #expect(try await Self.refusal(verifier, old) == nil)
            #expect(site.requestCount == 1)
            site.show(try Issuer.set(old, new))
            uptime.advance(by: KeyCache.pause)
            #expect(try await Self.refusal(verifier, new) == nil)
            #expect(try await Self.refusal(verifier, old) == nil)
            #expect(site.requestCount == 2)
        }
    }

    @Test func `unknown kids cause at most one fetch in the pause`() async throws {
        let old = try await Issuer.ecdsa("old")
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            for round in 1...3 {
                for each in 1...5 {
                    let stranger = try await Issuer.ecdsa("stranger-\(round)-\(each)")
                    #expect(try await Self.refusal(verifier, stranger) == .untrusted)
                }
                #expect(site.requestCount == round)
                uptime.advance(by: KeyCache.pause)
            }
        }
    }

    @Test func `an invalid signature of a known key causes no fetch`() async throws {
        let (old, forger) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("old"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            uptime.advance(by: KeyCache.pause)
            let refusal = try await Self.refusal(verifier, forger)
            #expect(refusal == .untrusted)
            #expect(site.requestCount == 1)
        }
    }

    @Test func `concurrent tokens with a new key wait for one fetch`() async throws {
        let new = try await Issuer.ecdsa("new")
        try await Self.withSite(try Issuer.set(try await Issuer.ecdsa("old"))) { site, uptime, _, verifier in
            site.show(try Issuer.set(new))
            uptime.advance(by: KeyCache.pause)
            let refusals = try await withThrowingTaskGroup(of: BearerTokenError.Reason?.self) { group in
                for _ in 1...20 { group.addTask { try await Self.refusal(verifier, new) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(refusals.allSatisfy { $0 == nil })
            #expect(site.requestCount == 2)
        }
    }

    @Test func `no valid token is rejected during a refresh`() async throws {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        let token = try new.token(Self.claims)
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            for _ in 1...20 {
                site.show(try Issuer.set(old))
                uptime.advance(by: KeyCache.lifetime)
                await KeyRefresher(verifier).refresh()
                site.show(try Issuer.set(new))
                uptime.advance(by: KeyCache.pause)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 1...100 { group.addTask { _ = try await verifier.verify(token) } }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test(arguments: [nil, "not JSON", #"{"keys":[]}"#, String(repeating: " ", count: 300_000)])
    func `while the URL is unreachable or unusable, the last keys stay in use`(page: String?) async throws {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, log, verifier in
            site.show(page)
            for _ in 1...3 {
                uptime.advance(by: KeyCache.lifetime)
                await KeyRefresher(verifier).refresh()
                #expect(try await Self.refusal(verifier, old) == nil)
                // The token may be valid: the response must not sign its user out.
                #expect(try await Self.refusal(verifier, new) == .keysUnavailable)
            }
            #expect(log.lines.filter { $0.level == .error }.count == 1, "logged once")
            site.show(try Issuer.set(new))
            uptime.advance(by: KeyCache.pause)
            await KeyRefresher(verifier).refresh()
            #expect(try await Self.refusal(verifier, new) == nil)
            #expect(log.lines.last?.level == .notice)
        }
    }

    @Test func `a key withdrawn at the URL is rejected after the maximum age`() async throws {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            site.show(try Issuer.set(new))
            uptime.advance(by: KeyCache.lifetime - .seconds(1))
            await KeyRefresher(verifier).refresh()
            #expect(try await Self.refusal(verifier, old) == nil)
            uptime.advance(by: .seconds(1))
            await KeyRefresher(verifier).refresh()
            #expect(try await Self.refusal(verifier, old) == .untrusted)
        }
    }

    @Test func `an unreachable URL does not stop the start`() async throws {
        let issuer = try await Issuer.ecdsa("a")
        try await Self.withSite(nil) { site, uptime, log, verifier in
            #expect(try await Self.refusal(verifier, issuer) == .keysUnavailable)
            #expect(log.lines.contains { $0.metadata["source"] == "\(site.url)" })
            site.show(try Issuer.set(issuer))
            uptime.advance(by: KeyCache.pause)
            #expect(try await Self.refusal(verifier, issuer) == nil)
        }
    }

    @Test(arguments: ["http://keys.example/jwks.json", "https://user:word@keys.example/", "https://"])
    func `an invalid URL stops the start`(url: String) async throws {
        let error = await #expect(throws: ConfigurationError.self) {
            _ = try await Self.verifier(.url(url), ManualClock())
        }
        #expect("\(String(describing: error))".contains("apps.portal.bearer"))
    }

    @Test func `a changed key file is read again, and an unusable one leaves the old key in use`() async throws {
        let folder = try TemporaryFolder()
        let (old, new) = (try await Issuer.ecdsa(), try await Issuer.ecdsa())
        let path = try folder.write("key.pem", old.material)
        let uptime = ManualClock()
        let verifier = try await Self.verifier(.file(path), uptime)
        try folder.write("key.pem", "half a k")
        uptime.advance(by: KeyCache.lifetime)
        await KeyRefresher(verifier).refresh()
        #expect(try await Self.refusal(verifier, old) == nil)
        try folder.write("key.pem", new.material)
        uptime.advance(by: KeyCache.pause)
        #expect(try await Self.refusal(verifier, new) == nil)
        #expect(try await Self.refusal(verifier, old) == .untrusted)
    }
}
