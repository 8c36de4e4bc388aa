import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// An import has the same effect as registering.
@Suite(.timeLimit(.minutes(5))) struct ImportStoreTests {
    private static let app = StoreFixture.app

    private static func withRegistry<R: Sendable>(
        lockTimeout: Duration? = nil, _ body: (PostgresPool) async throws -> R
    ) async throws -> R {
        try await TestSchema.registry.withDatabase { configuration in
            var configuration = configuration
            if let lockTimeout { configuration.lockTimeout = lockTimeout }
            return try await TestDatabase.withPool(configuration, body)
        }
    }

    private static func claim(_ random: inout SplitMix, at: Timestamp) -> RegistrationRequest {
        let kind: RegistrationKind = [.alert, .alert, .voip, .liveActivity, .fcmToken, .fid]
            .randomElement(using: &random)!
        let installation = ["i1", "i2", "i3", nil, nil].randomElement(using: &random)!
        var claim = RegistrationRequest(
            app: app, user: UserID(rawValue: ["a", "b", "c"].randomElement(using: &random)!)!, provider: kind.provider,
            environment: [.production, .development].randomElement(using: &random)!,
            token: DeviceToken(secret: ["01", "02", "03", "04", "05"].randomElement(using: &random)!), kind: kind,
            installation: installation.flatMap { InstallationID(rawValue: $0) },
            scope: kind == .liveActivity ? ["s", "t"].randomElement(using: &random)! : nil, at: at)
        claim.locale = ["de-CH", nil].randomElement(using: &random)!
        return claim
    }

    /// Imports devices as lines of a file.
    @discardableResult
    private static func bring(
        _ claims: [RegistrationRequest], _ store: ImportStore, file: [UInt8], from first: ImportState? = nil
    ) async throws -> ImportState {
        let state = if let first { first } else { try await store.begin(file, name: "a file") }
        var batch = ImportBatch()
        for (index, claim) in claims.enumerated() {
            batch.append(claim, registeredAt: claim.at?.date, line: index + 1)
        }
        return try await store.take(batch, of: file, after: state, end: (claims.count, claims.count * 10))
    }

    /// All registrations, without their timestamps of change.
    private func rows(_ pool: PostgresPool) async throws -> [String] {
        try await pool.query(
            """
            SELECT (to_jsonb(r) - 'state_changed_at')::text FROM registry.registration r ORDER BY device_id
            """
        ).map { try $0.decode(String.self, at: 0) }
    }

    /// The last event announced for each device.
    private func lastWords(_ pool: PostgresPool) async throws -> [String] {
        try await pool.query(
            """
            SELECT DISTINCT ON (device_id) device_id::text || ' ' || past || ' ' || user_id FROM registry.outbox
            WHERE device_id IS NOT NULL ORDER BY device_id, id DESC
            """
        ).map { try $0.decode(String.self, at: 0) }
    }

    @Test(arguments: 1...12) func `an import has the same effect as registering the devices`(seed: UInt64) async throws
    {
        let folder = try TemporaryFolder()
        let keys =
            seed.isMultiple(of: 2) ? try TokenEncryptionFixture.keys(TokenEncryptionFixture.first, in: folder) : .none
        try await Self.withRegistry { one in
            try await Self.withRegistry { other in
                var random = SplitMix(seed: seed)
                let start = Timestamp(milliseconds: Timestamp.now.milliseconds - 90 * 86_400_000)
                let limit = 3
                // The earlier rows, the same in both, in every state.
                for pool in [one, other] {
                    var random = SplitMix(seed: seed &+ 1000)
                    let store = RegistrationStore(pool, tokens: keys, devicesPerUser: limit)
                    for step in 0..<25 {
                        let at = start + .seconds(Int64(step) * 86_400)
                        let claim = Self.claim(&random, at: at)
                        switch Int.random(in: 0..<8, using: &random) {
                        case 0: try await store.unregister([claim])
                        case 1:
                            let word = Invalidation(
                                app: Self.app, device: claim.device, notRegisteredSince: at, reason: "Unregistered")
                            _ = try await store.deactivate([word])
                        case 2:
                            let environment: ProviderEnvironment =
                                claim.environment == .production ? .development : .production
                            _ = try await store.correct(device: claim.device, of: Self.app, to: environment)
                        case 3 where step > 20: try await store.erase(AppUser(app: Self.app, user: claim.user), at: at)
                        default: try await store.register([claim])
                        }
                    }
                }
                #expect(try await rows(one) == rows(other))
                let claims = (0..<60).map { step in
                    let isLate = Int.random(in: 0..<4, using: &random) == 0
                    let back = isLate ? Int64.random(in: 0...40, using: &random) : 0
                    return Self.claim(
                        &random, at: start + .seconds(Int64(20 + step) * 86_400 - back * 86_400) + .milliseconds(step))
                }
                let store = RegistrationStore(one, tokens: keys, devicesPerUser: limit)
                try await store.register(claims)
                let file: [UInt8] = [1]
                let importing = ImportStore(other, cipher: keys.cipher, devicesPerUser: limit)
                let state = try await Self.bring(claims, importing, file: file)
                #expect(state.taken + state.superseded == claims.count && state.taken > 0)
                let (there, here) = (try await rows(other), try await rows(one))
                for (a, b) in zip(there, here) { #expect(a == b) }
                #expect(there.count == here.count)
                #expect(try await lastWords(other) == lastWords(one))
            }
        }
    }

    private func one(_ user: String, _ token: String, at: Timestamp? = nil) -> RegistrationRequest {
        StoreFixture.claim(user, token, .fcm, kind: .fid, at: at)
    }

    @Test func `of lines without a time the last wins, unless the device registered since`() async throws {
        try await Self.withRegistry { pool in
            let store = ImportStore(pool, devicesPerUser: 100)
            let file: [UInt8] = [7]
            var state = try await store.begin(file, name: "a file")
            try await RegistrationStore(pool).register([
                RegistrationRequest(
                    app: Self.app, user: UserID(rawValue: "self")!, provider: .fcm, environment: .production,
                    token: DeviceToken(secret: "t2"), kind: .fid)
            ])
            state = try await Self.bring(
                [one("a", "t1"), one("b", "t1"), one("c", "t2")], store, file: file, from: state)
            #expect((state.taken, state.superseded) == (2, 1))
            let owners = try await pool.query("SELECT user_id FROM registry.registration ORDER BY token")
                .map { try $0.decode(String.self, at: 0) }
            #expect(owners == ["b", "self"])
        }
    }

    @Test func `two processes importing one file repeat nothing`() async throws {
        try await Self.withRegistry { pool async throws in
            let store = ImportStore(pool, devicesPerUser: 100)
            let file: [UInt8] = [7]
            let state = try await store.begin(file, name: "a file")
            try await Self.bring([one("a", "t1")], store, file: file, from: state)
            await #expect(throws: ImportError.concurrent) {
                try await Self.bring([one("b", "t2")], store, file: file, from: state)
            }
            #expect(try await pool.query("SELECT count(*) FROM registry.registration").single(Int.self) == 1)
            let now = try await store.begin(file, name: "a file")
            #expect((now.line, now.position, now.taken) == (1, 10, 1))
            try await store.finish(file, now)
            #expect(try await store.begin(file, name: "a file").finishedAt != nil)
            try await store.forget(file)
            #expect(try await store.begin(file, name: "a file").line == 0)
        }
    }

    @Test func `an import and a registration of the same user are serialised by an advisory lock`() async throws {
        try await Self.withRegistry(lockTimeout: .milliseconds(500)) { pool async throws in
            let store = ImportStore(pool, devicesPerUser: 100)
            let device = StoreFixture.claim("a", "t", .fcm, kind: .fid, on: "i")
            let advisoryLocks = [
                AdvisoryLock.user(Self.app, device.user),
                AdvisoryLock.installation(Self.app, InstallationID(rawValue: "i")!),
            ]
            for (number, turn) in advisoryLocks.enumerated() {
                try await pool.transaction { transaction in
                    try await transaction.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                    try await transaction.execute(AdvisoryLock.take([turn]))
                    let error = await #expect(throws: PostgresError.self) {
                        try await Self.bring([device], store, file: [UInt8(number)])
                    }
                    // The lock was not available.
                    #expect(error?.code == .sqlState("55P03"))
                }
            }
        }
    }

    @Test func `unannounced registrations publish no event, but the ends they cause do`() async throws {
        try await Self.withRegistry { pool in
            try await Self.bring(
                [one("a", "t1", at: Timestamp(milliseconds: 1_767_225_600_000))],
                ImportStore(pool, devicesPerUser: 100), file: [1])
            try await Self.bring(
                [one("b", "t1"), one("b", "t2")],
                ImportStore(pool, devicesPerUser: 100, announces: false), file: [2])
            let words = try await pool.query("SELECT past || ' ' || user_id FROM registry.outbox ORDER BY id")
                .map { try $0.decode(String.self, at: 0) }
            #expect(words == ["registered a", "replaced a", "registered b"])
        }
    }
}
