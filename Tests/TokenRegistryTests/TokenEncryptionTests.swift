import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport
import TokenEncryption

@testable import RegistryStore
@testable import TokenRegistry

/// Threat S8: an attacker reads the database's disk or a backup.
@Suite(.timeLimit(.minutes(2))) struct TokenEncryptionTests {
    typealias Fixture = StoreFixture
    typealias Keys = TokenEncryptionFixture
    static let other = AppID(rawValue: "hide-and-seek")!
    static let apns = String(repeating: "9fa0", count: 16)
    static let fcm = "dHN0OmZjbQ:APA91b-\(String(repeating: "x_Y", count: 40))"

    @Test func `a reader of the whole database finds no device token (S8)`() async throws {
        let folder = try TemporaryFolder()
        let keys = try Keys.keys(Keys.first, in: folder)
        try await Fixture.withStore(tokens: keys) { store, pool in
            let phone = Fixture.claim("a", Self.apns, on: "phone")
            try await store.register([phone, Fixture.claim("b", Self.fcm, .fcm)])
            try await store.unregister([Fixture.claim("c", "c0ffee00c0ffee00")])
            _ = try await store.correct(device: phone.device, of: Fixture.app, to: .development)
            // After a correction, requests for the wrong environment apply to the moved registration.
            try await store.register([Fixture.claim("a", Self.apns, on: "phone")])
            _ = try await store.replace(
                .init(app: Fixture.app, id: InstallationID(rawValue: "phone")!), of: UserID(rawValue: "a")!,
                with: [Fixture.claim("a", Self.apns, environment: .development, on: "phone")])
            try await Keys.walk(TokenRewriteStore(pool, tokens: keys))
            let dump = try await Keys.dump(pool)
            #expect(dump.contains("v1 k1 ") && dump.contains("c0ffee") == false)
            for token in [Self.apns, Self.fcm] {
                let spellings = [token, token.uppercased(), Data(token.utf8).base64EncodedString()]
                for spelling in spellings { #expect(!dump.contains(spelling)) }
            }
            #expect(try await Keys.stored(pool) == ["k1": 4])
            #expect(try await store.tokens(of: "a") == [Self.apns])
            #expect(try await store.tokens(of: "b") == [Self.fcm])
            let seen = try await store.records(of: Fixture.user("a")).map(\.registration.token.masked)
            #expect(Set(seen) == ["9fa0… (64 characters)"])
        }
    }

    @Test func `a push has the token that was registered`() async throws {
        let folder = try TemporaryFolder()
        let keys = try Keys.keys(Keys.first, in: folder)
        try await Fixture.withStore(tokens: keys) { store, pool in
            try await store.register([Fixture.claim("a", Self.apns), Fixture.claim("b", Self.fcm, .fcm)])
            let walk = try await AudienceFixture.walk(
                AudienceFixture.notification(.everyone), CampaignStore(pool, tokens: keys), limit: 10)
            #expect(Set(walk.told) == [Self.apns, Self.fcm])
            let devices = try await store.devices(of: [Fixture.user("a"), Fixture.user("b")])
            #expect(devices.map { $0.map(\.token.secret) } == [[Self.apns], [Self.fcm]])
        }
    }

    @Test func `a repeated registration keeps the stored text`() async throws {
        let folder = try TemporaryFolder()
        try await Fixture.withStore(tokens: try Keys.keys(Keys.first, in: folder)) { store, pool in
            var texts: Set<String> = []
            for _ in 0..<3 {
                try await store.register([Fixture.claim("a", Self.apns)])
                texts.insert(try await pool.query("SELECT token FROM registry.registration").single(String.self))
            }
            #expect(texts.count == 1)
        }
    }

    // MARK: - Upgrade and rotation

    @Test func `tokens in clear are encrypted in the background without events, and can be decrypted again`()
        async throws
    {
        let folder = try TemporaryFolder()
        try await Fixture.withStore { plain, pool in
            for number in 0..<25 { try await plain.register([Fixture.claim("u\(number)", "ab0\(number)c", .fcm)]) }
            try await plain.register([Fixture.claim("erased", "ffff")])
            try await plain.erase(Fixture.user("erased"))
            try await pool.execute("DELETE FROM registry.outbox")
            let keys = try Keys.keys(Keys.first, in: folder)
            let store = RegistrationStore(pool, tokens: keys)
            #expect(try await store.tokens(of: "u7") == ["ab07c"])
            let rewriting = TokenRewriteStore(pool, tokens: keys, step: 4)
            #expect(try await Keys.walk(rewriting) == 25)
            #expect(try await Keys.stored(pool) == ["k1": 25])
            #expect(try await store.tokens(of: "u7") == ["ab07c"])
            #expect(try await pool.query("SELECT count(*) FROM registry.outbox").single(Int.self) == 0)
            // The next walk finds nothing, then the rewriter rests.
            #expect(try await Keys.walk(rewriting) == 0)
            #expect(try await rewriting.advance() == .resting(.init(numbers: ["k1": 25], isSettled: true)))

            // Return to the previous release.
            let back = try Keys.keys("plain", Keys.first, in: folder)
            #expect(try await Keys.walk(TokenRewriteStore(pool, tokens: back)) == 25)
            #expect(try await plain.tokens(of: "u7") == ["ab07c"])
        }
    }

    @Test func `tokens move to a second key, and the first can then be removed`() async throws {
        let folder = try TemporaryFolder()
        let log = CapturingLogger()
        let keys = try Keys.keys(Keys.first, in: folder, log: log)
        try await Fixture.withStore(tokens: keys) { store, pool in
            try await store.register([Fixture.claim("a", Self.apns), Fixture.claim("b", Self.fcm, .fcm)])
            let worker = TokenRewriter(
                store: TokenRewriteStore(pool, tokens: keys), bulkThrottle: BulkThrottle(), logger: log.logger)
            _ = try await worker.step()
            // First every process knows the new key, then it becomes the first.
            try folder.write("keys", "\(Keys.first)\n\(Keys.second)")
            #expect(keys.refresh())
            try await store.register([Fixture.claim("a", Self.apns)])
            #expect(try await Keys.stored(pool) == ["k1": 2])
            try folder.write("keys", "\(Keys.second)\n\(Keys.first)")
            #expect(keys.refresh())
            _ = try await worker.step()
            #expect(try await Keys.stored(pool) == ["k2": 2])
            _ = try await worker.step()
            _ = try await worker.step()
            #expect(log.lines.contains { $0.message.contains("All stored device tokens") && $0.level == .notice })
            try folder.write("keys", Keys.second)
            #expect(keys.refresh())
            #expect(try await store.tokens(of: "a") == [Self.apns])
            #expect(try await store.tokens(of: "b") == [Self.fcm])
            #expect(!"\(log.lines)".contains("AQEB") && !"\(log.lines)".contains(Self.apns))
        }
    }

    @Test func `several processes rewrite together during registrations`() async throws {
        let folder = try TemporaryFolder()
        try await Fixture.withStore { plain, pool in
            for number in 0..<60 { try await plain.register([Fixture.claim("u\(number)", "t\(number)", .fcm)]) }
            let keys = try Keys.keys(Keys.first, in: folder)
            let store = RegistrationStore(pool, tokens: keys)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        let rewriting = TokenRewriteStore(pool, tokens: keys, step: 5)
                        for _ in 0..<40 { _ = try await rewriting.advance() }
                    }
                }
                group.addTask {
                    for number in 0..<60 { try await store.register([Fixture.claim("v\(number)", "t\(number)", .fcm)]) }
                }
                try await group.waitForAll()
            }
            try await Keys.walk(TokenRewriteStore(pool, tokens: keys))
            #expect(try await Keys.stored(pool) == ["k1": 60])
            for number in 0..<60 { #expect(try await store.tokens(of: "v\(number)") == ["t\(number)"]) }
        }
    }

    // MARK: - Invalid rows and files

    @Test func `a token that cannot be decrypted affects no other app, and works again after registration`()
        async throws
    {
        let folder = try TemporaryFolder()
        let log = CapturingLogger()
        let keys = try Keys.keys(Keys.first, in: folder, log: log)
        try await Fixture.withStore(tokens: keys) { store, pool in
            try await store.register([Fixture.claim("a", "0a01"), Fixture.claim("b", "0b02", app: Self.other)])
            try await store.register([Fixture.claim("a", "0a03"), Fixture.claim("c", "0c04")])
            let (lost, moved) = (Fixture.claim("a", "0a01").device, Fixture.claim("c", "0c04").device)
            // One with a lost key, one copied from another row.
            try await pool.execute(
                "UPDATE registry.registration SET token = replace(token, 'v1 k1 ', 'v1 k0 ') WHERE device_id = \(lost)")
            try await pool.execute(
                """
                UPDATE registry.registration r SET token = s.token FROM registry.registration s
                WHERE r.device_id = \(moved) AND s.app = 'hide-and-seek'
                """)
            let users = [Fixture.user("a"), Fixture.user("b", app: Self.other), Fixture.user("c")]
            let devices = try await store.devices(of: users)
            #expect(devices.map { $0.map(\.token.secret) } == [["0a03"], ["0b02"], []])
            let walk = try await AudienceFixture.walk(
                AudienceFixture.notification(.everyone), CampaignStore(pool, tokens: keys), limit: 10)
            #expect(walk.told == ["0a03"])
            #expect(log.lines.count { $0.message.contains("cannot be decrypted") } == 1)
            #expect("\(log.lines)".contains("key-unknown"))
            // Operators still see it, the rewriter skips it, and a correction does not move it.
            #expect(try await store.history(of: Fixture.user("a")).count == 2)
            #expect(try await store.correct(device: lost, of: Fixture.app, to: .development) == false)
            #expect(try await Keys.walk(TokenRewriteStore(pool, tokens: keys)) == 0)
            #expect(try await Keys.stored(pool) == ["k0": 1, "k1": 3])

            try await store.register([Fixture.claim("a", "0a01"), Fixture.claim("c", "0c04")])
            #expect(try await store.tokens(of: "a") == ["0a01", "0a03"])
            #expect(try await store.tokens(of: "c") == ["0c04"])
            try await pool.execute("UPDATE registry.registration SET token = 'v1 k1 AAAA' WHERE device_id = \(lost)")
            #expect(try await store.erase(Fixture.user("a")) == 2)
        }
    }

    @Test func `a token with a new key rereads the file at once`() async throws {
        let folder = try TemporaryFolder()
        let keys = try Keys.keys(Keys.first, in: folder)
        let others = try TemporaryFolder()
        try await Fixture.withStore(tokens: try Keys.keys(Keys.second, in: others)) { store, pool in
            try await store.register([Fixture.claim("a", Self.apns)])
            try folder.write("keys", "\(Keys.first)\n\(Keys.second)")
            #expect(try await RegistrationStore(pool, tokens: keys).tokens(of: "a") == [Self.apns])
        }
    }

    @Test func `an invalid key file prevents the start, and later keeps the earlier keys`() throws {
        let folder = try TemporaryFolder()
        let log = CapturingLogger()
        for (text, problem) in [("", "has no key"), ("k1:AAAA", "line 1: the key “k1” has 3 bytes")] {
            let error = #expect(throws: ConfigurationError.self) { try Keys.keys(text, in: folder) }
            #expect(error?.description.contains("REGISTRY_TOKEN_KEYS_FILE") == true)
            #expect(error?.description.contains(problem) == true)
        }
        let missing = #expect(throws: ConfigurationError.self) {
            try TokenKeys(file: "\(folder.path)/none", logger: log.logger)
        }
        #expect(missing?.description.contains("cannot be read") == true)

        let keys = try Keys.keys(Keys.first, in: folder, log: log)
        try folder.write("keys", "k1")
        #expect(!keys.refresh() && !keys.refresh())
        #expect(keys.cipher.writingKeyID == "k1")
        #expect(log.lines.count { $0.message.contains("the earlier keys stay in use") } == 1)
        try folder.write("keys", Keys.second)
        #expect(keys.refresh() && keys.cipher.writingKeyID == "k2")
        _ = try TokenKeys(file: nil, logger: log.logger)
        #expect(log.lines.last?.level == .warning && log.lines.last?.message.contains("in clear") == true)
    }
}
