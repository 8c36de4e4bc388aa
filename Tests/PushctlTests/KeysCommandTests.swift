import Foundation
import HTTPAuth
import Postgres
import Primitives
import PushProtocol
import Testing
import TestSupport

@testable import Pushctl

/// Keys created by `pushctl keys` are accepted by the registry and rules.
@Suite(.timeLimit(.minutes(2))) struct KeysCommandTests {
    private static let app = AppID(rawValue: "family-portal")!

    @Test func `a key is stored without its secret, accepted by the registry, and revoked`() async throws {
        try await TestSchema.registry.withPool { pool in
            var random = SplitMix(seed: 5)
            let key = APIKey(using: &random)
            let store = APIKeyStore(pool, schema: APIKeyService.registry.schema)
            #expect(try await store.list().isEmpty)
            let expiry = Date(timeIntervalSince1970: 4_000_000_000)
            try await store.add(
                key, name: "desk", app: Self.app, operations: [.readDevices, .readCounts], expiresAt: expiry
            )
            let kept = try await pool.query("SELECT to_jsonb(k)::text FROM registry.api_key k").single(String.self)
            #expect(kept.contains("desk") && !kept.contains(key.secret) && !kept.contains(key.secret.suffix(64)))

            let registry = APIKeyStore(pool, schema: "registry")
            let record = try #require(try await registry.record(of: key.id))
            try record.check(key, now: Date())
            try record.check(.readCounts)
            try record.check(Self.app)
            #expect(throws: APIKeyRecord.AccessError.expired) { try record.check(key, now: expiry) }
            #expect(throws: APIKeyRecord.AccessError.wrong) { try record.check(APIKey(using: &random), now: Date()) }
            #expect(throws: APIKeyRecord.AccessError.wrongOperation) { try record.check(.eraseUsers) }
            #expect(throws: APIKeyRecord.AccessError.wrongApp) { try record.check(nil) }
            try await registry.recordUse(key.id)

            let entry = try #require(try await store.list().first)
            #expect(entry.id == key.id && entry.lastUsedAt != nil && entry.revokedAt == nil)
            let line = APIKeyStore.StoredAPIKey.table([entry], now: Date()).lines()[1]
            #expect(line.hasPrefix("\(key.id)  active  family-portal  devices:read,counts:read  desk  2096-"))
            #expect(entry.state(now: expiry) == "expired")
            #expect(entry.json(now: Date())["operations"] == ["devices:read", "counts:read"])

            #expect(try await store.revoke(key.id))
            let revokedAt = try await store.list().first?.revokedAt
            #expect(try await store.revoke(key.id))
            #expect(try await store.list().first?.revokedAt == revokedAt)
            #expect(try await store.list().first?.state(now: Date()) == "revoked")
            #expect(try await !store.revoke("none"))
            let revoked = try #require(try await registry.record(of: key.id))
            #expect(throws: APIKeyRecord.AccessError.revoked) { try revoked.check(key, now: Date()) }
        }
    }

    @Test func `keys of rules are accepted by rules for its operations`() async throws {
        try await TestSchema.rules.withPool { pool in
            var random = SplitMix(seed: 6)
            let key = APIKey(using: &random)
            let store = APIKeyStore(pool, schema: APIKeyService.rules.schema)
            try await store.add(
                key, name: "desk", app: nil, operations: APIKeyService.rules.operations, expiresAt: nil)
            let record = try #require(try await APIKeyStore(pool, schema: "rules").record(of: key.id))
            try record.check(key, now: Date())
            for operation in APIKeyService.rules.operations { try record.check(operation) }
            try await APIKeyStore(pool, schema: "rules").recordUse(key.id)
            #expect(try await store.list().first?.lastUsedAt != nil)
            #expect(try await store.revoke(key.id))
            #expect(try await store.list().first?.revokedAt != nil)
            // The rejection names the command to look at.
            let gate = APIKeyAuthenticator(
                APIKeyStore(pool, schema: APIKeyService.rules.schema), master: nil,
                limit: RateLimiter("key", perMinute: 0), logger: .silent)
            let refusal = await #expect(throws: APIError.self) {
                _ = try await gate.caller(key.secret, to: .readEvents)
            }
            #expect(refusal?.message.contains("pushctl keys list --service rules shows") == true)
        }
    }

    @Test func `operations without an API are rejected, and each operation has an API`() throws {
        #expect(try APIKeyService.rules.operation("events:read") == .readEvents)
        for (service, word) in [(APIKeyService.rules, "devices:read"), (.registry, "events:read"), (.rules, "x")] {
            let refusal = #expect(throws: CommandError.self) { try service.operation(word) }
            #expect(refusal?.description.hasPrefix("--may for \(service) must be one of ") == true)
        }
        #expect(Set(APIKeyService.allCases.flatMap(\.operations)) == Set(APIKey.Operation.allCases))
    }
}
