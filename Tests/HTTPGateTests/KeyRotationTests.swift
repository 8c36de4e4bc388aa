import Foundation
import Logging
import PushProtocol
import ServiceKit
import TestSupport
import Testing

@testable import HTTPGate

/// Keys that change while the registry runs, at a URL and in a file.
@Suite(.timeLimit(.minutes(1))) struct KeyRotationTests {
    static let claims: JSONValue = [
        "sub": "456", "aud": "push", "exp": .int(Int64(Date().timeIntervalSince1970) + 3600),
    ]

    static func verifier(
        _ keys: BearerVerification.Keys, _ uptime: Uptime, _ log: CapturingLogger = CapturingLogger()
    ) async throws -> BearerVerifier {
        let bearer = BearerVerification(algorithm: .es256, keys: keys, audience: "push")
        return try await BearerVerifier(
            AppCatalog([AppConfiguration(id: AppID(rawValue: "portal")!, bearer: [bearer])]),
            uptime: { uptime.now }, logger: log.logger)
    }

    /// A verifier of a site's keys.
    static func withSite(
        _ text: String?, _ body: (KeySite, Uptime, CapturingLogger, BearerVerifier) async throws -> Void
    ) async throws {
        let site = try KeySite(text)
        defer { site.stop() }
        let (uptime, log) = (Uptime(), CapturingLogger())
        try await body(site, uptime, log, try await verifier(.url(site.url), uptime, log))
    }

    static func refusal(_ verifier: BearerVerifier, _ issuer: Issuer) async throws -> BearerRefusal.Reason? {
        let token = try issuer.token(claims)
        do {
            _ = try await verifier.verify(token)
            return nil
        } catch { return error.reason }
    }

    @Test func `a key that is new at the URL is taken up when a token first names it, the old beside it`() async throws
    {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            #expect(try await Self.refusal(verifier, old) == nil)
            #expect(site.visits == 1)
            site.show(try Issuer.set(old, new))
            uptime.pass(KeyRing.pause)
            #expect(try await Self.refusal(verifier, new) == nil)
            #expect(try await Self.refusal(verifier, old) == nil)
            #expect(site.visits == 2)
        }
    }

    @Test func `unknown keys make the URL read once in the pause, however many are named`() async throws {
        let old = try await Issuer.ecdsa("old")
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            for round in 1...3 {
                for each in 1...5 {
                    let stranger = try await Issuer.ecdsa("stranger-\(round)-\(each)")
                    #expect(try await Self.refusal(verifier, stranger) == .untrusted)
                }
                #expect(site.visits == round)
                uptime.pass(KeyRing.pause)
            }
        }
    }

    @Test func `a signature that does not fit a known key asks nobody`() async throws {
        let (old, forger) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("old"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            uptime.pass(KeyRing.pause)
            let refusal = try await Self.refusal(verifier, forger)
            #expect(refusal == .untrusted)
            #expect(site.visits == 1)
        }
    }

    @Test func `everyone who comes with a new key waits for one reading`() async throws {
        let new = try await Issuer.ecdsa("new")
        try await Self.withSite(try Issuer.set(try await Issuer.ecdsa("old"))) { site, uptime, _, verifier in
            site.show(try Issuer.set(new))
            uptime.pass(KeyRing.pause)
            let refusals = try await withThrowingTaskGroup(of: BearerRefusal.Reason?.self) { group in
                for _ in 1...20 { group.addTask { try await Self.refusal(verifier, new) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(refusals.allSatisfy { $0 == nil })
            #expect(site.visits == 2)
        }
    }

    @Test func `nobody is turned away who comes in the moment in which a new key does`() async throws {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        let token = try new.token(Self.claims)
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            for _ in 1...20 {
                site.show(try Issuer.set(old))
                uptime.pass(KeyRing.lifetime)
                await KeyRefresher(verifier.rings).refresh()
                site.show(try Issuer.set(new))
                uptime.pass(KeyRing.pause)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 1...100 { group.addTask { _ = try await verifier.verify(token) } }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test(arguments: [nil, "not JSON", #"{"keys":[]}"#, String(repeating: " ", count: 300_000)])
    func `while the URL is away or has nothing of use, its keys stay in force`(page: String?) async throws {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, log, verifier in
            site.show(page)
            for _ in 1...3 {
                uptime.pass(KeyRing.lifetime)
                await KeyRefresher(verifier.rings).refresh()
                #expect(try await Self.refusal(verifier, old) == nil)
                // It may be a good one: nobody is to be signed out over it.
                #expect(try await Self.refusal(verifier, new) == .keysAway)
            }
            #expect(log.lines.filter { $0.level == .error }.count == 1, "told once")
            site.show(try Issuer.set(new))
            uptime.pass(KeyRing.pause)
            await KeyRefresher(verifier.rings).refresh()
            #expect(try await Self.refusal(verifier, new) == nil)
            #expect(log.lines.last?.level == .notice)
        }
    }

    @Test func `a key that is withdrawn at the URL is refused once the keys are old`() async throws {
        let (old, new) = (try await Issuer.ecdsa("old"), try await Issuer.ecdsa("new"))
        try await Self.withSite(try Issuer.set(old)) { site, uptime, _, verifier in
            site.show(try Issuer.set(new))
            uptime.pass(KeyRing.lifetime - .seconds(1))
            await KeyRefresher(verifier.rings).refresh()
            #expect(try await Self.refusal(verifier, old) == nil)
            uptime.pass(.seconds(1))
            await KeyRefresher(verifier.rings).refresh()
            #expect(try await Self.refusal(verifier, old) == .untrusted)
        }
    }

    @Test func `a URL that is away at the start does not stop it`() async throws {
        let issuer = try await Issuer.ecdsa("a")
        try await Self.withSite(nil) { site, uptime, log, verifier in
            #expect(try await Self.refusal(verifier, issuer) == .keysAway)
            #expect(log.lines.contains { $0.metadata["source"] == "\(site.url)" })
            site.show(try Issuer.set(issuer))
            uptime.pass(KeyRing.pause)
            #expect(try await Self.refusal(verifier, issuer) == nil)
        }
    }

    @Test(arguments: ["http://keys.example/jwks.json", "https://user:word@keys.example/", "https://"])
    func `a URL that never can be of use does`(url: String) async throws {
        let error = await #expect(throws: ConfigurationError.self) { _ = try await Self.verifier(.url(url), Uptime()) }
        #expect("\(String(describing: error))".contains("apps.portal.bearer"))
    }

    @Test func `a key file that changes is read again, and one that breaks leaves the old key in force`() async throws {
        let folder = try TemporaryFolder()
        let (old, new) = (try await Issuer.ecdsa(), try await Issuer.ecdsa())
        let path = try folder.write("key.pem", old.material)
        let uptime = Uptime()
        let verifier = try await Self.verifier(.file(path), uptime)
        try folder.write("key.pem", "half a k")
        uptime.pass(KeyRing.lifetime)
        await KeyRefresher(verifier.rings).refresh()
        #expect(try await Self.refusal(verifier, old) == nil)
        try folder.write("key.pem", new.material)
        uptime.pass(KeyRing.pause)
        #expect(try await Self.refusal(verifier, new) == nil)
        #expect(try await Self.refusal(verifier, old) == .untrusted)
    }
}
