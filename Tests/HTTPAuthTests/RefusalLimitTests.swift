import Foundation
import HTTPSFetch
import HTTPTypes
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import HTTPAuth

/// Rejected tokens cost a bounded amount of work.
@Suite(.timeLimit(.minutes(1))) struct RefusalLimitTests {
    @Test func `above the limit only recently accepted tokens are verified`() async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let uptime = ManualClock()
        let gate = BearerAuthenticator(
            try await keys.verifier(), refusals: 2, uptime: { uptime.now }, logger: .silent)
        func status(_ token: String) async throws -> Int {
            do {
                _ = try await gate.authenticate(token)
                return 200
            } catch { return error.status.code }
        }
        let known = try await BearerKeys.shared([:])
        let fresh = try await BearerKeys.shared(["sub": "fresh"])
        #expect(try await status(known) == 200)
        for _ in 0..<2 { #expect(try await status("bad") == 401) }
        #expect(try await status("bad") == 429)
        #expect(try await status(fresh) == 429)
        #expect(try await status(known) == 200)
        uptime.advance(by: .seconds(30))
        #expect(try await status(fresh) == 200)
    }

    @Test func `a token with a longer lifetime than the maximum is rejected`() async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let verifier = try await BearerVerifier(
            keys.catalog, maximumLifetime: .seconds(86_400), now: { BearerKeys.now }, logger: .silent)
        let now = Int64(BearerKeys.now.timeIntervalSince1970)
        func reason(_ changes: [String: JSONValue?]) async throws -> BearerTokenError.Reason? {
            do throws(BearerTokenError) {
                _ = try await verifier.verify(try! await BearerKeys.shared(changes))
                return nil
            } catch { return error.reason }
        }
        #expect(try await reason(["exp": .int(now + 86_400)]) == nil)
        #expect(try await reason(["exp": .int(now + 86_500)]) == .tooLongLived)
        #expect(try await reason(["exp": .int(now + 600), "iat": .int(now - 80_000)]) == nil)
        #expect(try await reason(["exp": .int(now + 600), "iat": .int(now - 90_000)]) == .tooLongLived)
    }

    @Test func `several unreachable key sets cost a request one time-out`() async throws {
        // They accept connections and never respond.
        let silent = try (0..<6).map { _ in try SilentListener() }
        let uptime = ManualClock()
        let fetch = HTTPSFetch(
            caFile: nil, connectTimeout: .seconds(3), timeout: .seconds(3), maximumResponseSize: 1024)
        let verifications = silent.map {
            BearerVerification(algorithm: .hs256, keys: .url("https://127.0.0.1:\($0.port)/"), audience: "push")
        }
        let catalog = AppCatalog([
            AppConfiguration(id: AppID(rawValue: "shared")!, bearer: verifications)
        ])
        let verifier = try await BearerVerifier(
            catalog, fetch: fetch, now: { BearerKeys.now }, uptime: { uptime.now }, logger: .silent)
        uptime.advance(by: KeyCache.pause)
        let begun = ContinuousClock.now
        await #expect(throws: BearerTokenError(.keysUnavailable)) {
            _ = try await verifier.verify(try await BearerKeys.shared([:]))
        }
        // One after the other, they would take 18 s.
        #expect(ContinuousClock.now - begun < .seconds(15))
        #expect(Set(silent.map(\.port)).count == 6)
    }
}
