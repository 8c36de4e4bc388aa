import Foundation
import HTTPGate
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Pushctl
@testable import TokenRegistry

/// What `pushctl keys` writes, the registry takes.
@Suite(.timeLimit(.minutes(2))) struct KeyStoreTests {
    @Test func `a key is kept without its secret, taken by the registry, and revoked for good`() async throws {
        try await ImportStoreTests.withRegistry { pool in
            var random = SplitMix(seed: 5)
            let key = APIKey(using: &random)
            let store = KeyStore(pool, of: .registry)
            #expect(try await store.list().isEmpty)
            let expiry = Date(timeIntervalSince1970: 4_000_000_000)
            try await store.add(
                key, name: "desk", app: ImportStoreTests.app, operations: [.readDevices, .readCounts], expiresAt: expiry
            )
            let kept = try await pool.query("SELECT to_jsonb(k)::text FROM registry.api_key k").single(String.self)
            #expect(kept.contains("desk") && !kept.contains(key.secret) && !kept.contains(key.secret.suffix(64)))

            let registry = APIKeyStore(pool, schema: "registry")
            let grant = try #require(try await registry.grant(of: key.id))
            try grant.check(key, now: Date())
            try grant.check(.readCounts)
            try grant.check(ImportStoreTests.app)
            #expect(throws: KeyGrant.Refusal.expired) { try grant.check(key, now: expiry) }
            #expect(throws: KeyGrant.Refusal.wrong) { try grant.check(APIKey(using: &random), now: Date()) }
            #expect(throws: KeyGrant.Refusal.wrongOperation) { try grant.check(.eraseUsers) }
            #expect(throws: KeyGrant.Refusal.wrongApp) { try grant.check(nil) }
            try await registry.touch(key.id)

            let entry = try #require(try await store.list().first)
            #expect(entry.id == key.id && entry.lastUsedAt != nil && entry.revokedAt == nil)
            let line = entry.line(now: Date())
            #expect(line.hasPrefix("\(key.id)  active  family-portal  devices:read,counts:read  desk  (until 2096-"))
            #expect(entry.line(now: expiry).contains("  expired  "))

            #expect(try await store.revoke(key.id))
            let revokedAt = try await store.list().first?.revokedAt
            #expect(try await store.revoke(key.id))
            #expect(try await store.list().first?.revokedAt == revokedAt)
            #expect(try await store.list().first?.line(now: Date()).contains("  revoked  ") == true)
            #expect(try await !store.revoke("none"))
            let revoked = try #require(try await registry.grant(of: key.id))
            #expect(throws: KeyGrant.Refusal.revoked) { try revoked.check(key, now: Date()) }
        }
    }

    @Test func `the keys of rules are taken by rules, and for what rules answers`() async throws {
        try await TestSchema.rules.withPool { pool in
            var random = SplitMix(seed: 6)
            let key = APIKey(using: &random)
            let store = KeyStore(pool, of: .rules)
            try await store.add(
                key, name: "desk", app: nil, operations: KeyedService.rules.operations, expiresAt: nil)
            let grant = try #require(try await APIKeyStore(pool, schema: "rules").grant(of: key.id))
            try grant.check(key, now: Date())
            for operation in KeyedService.rules.operations { try grant.check(operation) }
            try await APIKeyStore(pool, schema: "rules").touch(key.id)
            #expect(try await store.list().first?.lastUsedAt != nil)
            #expect(try await store.revoke(key.id))
            #expect(try await store.list().first?.revokedAt != nil)
            // Who is turned away is told where to look.
            let gate = KeyGate(
                APIKeyStore(pool, schema: KeyedService.rules.schema), master: nil,
                limit: RateGate("key", perMinute: 0), logger: .silent)
            let refusal = await #expect(throws: APIRefusal.self) {
                _ = try await gate.caller(key.secret, to: .readEvents)
            }
            #expect(refusal?.message.contains("pushctl keys list --service rules shows") == true)
        }
    }

    @Test func `what nobody answers cannot be asked for, and somebody answers everything`() throws {
        #expect(try KeyedService.rules.operation("events:read") == .readEvents)
        for (service, word) in [(KeyedService.rules, "devices:read"), (.registry, "events:read"), (.rules, "x")] {
            let refusal = #expect(throws: Refusal.self) { try service.operation(word) }
            #expect(refusal?.description.hasPrefix("--may, for \(service), is one of ") == true)
        }
        #expect(Set(KeyedService.allCases.flatMap(\.operations)) == Set(APIKey.Operation.allCases))
    }
}
