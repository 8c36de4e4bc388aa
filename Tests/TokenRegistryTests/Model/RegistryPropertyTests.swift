import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// Runs random sequences of operations on the stores and on the model, with days and weeks between them. Compares every
/// result, and each user's devices and topics after every step; at the end all rows and events. Each sequence has its
/// own app, so many run together in batches.
@Suite(.timeLimit(.minutes(15))) struct RegistryPropertyTests {
    static let sequences = 10_000
    static let together = 400
    static let steps = 6
    static let cap = 3

    @Test func `ten thousand random sequences match the model`() async throws {
        let seed = TestSeed.value
        let folder = try TemporaryFolder()
        let keys = try TokenEncryptionFixture.keys(TokenEncryptionFixture.first, in: folder)
        try await StoreFixture.withStore(devicesPerUser: Self.cap) { plain, pool in
            let encrypting = RegistrationStore(pool, tokens: keys, devicesPerUser: Self.cap)
            for round in 0..<(Self.sequences / Self.together) {
                let store = round.isMultiple(of: 2) ? encrypting : plain
                try await Self.play(seed: seed &+ UInt64(round), store, pool)
                try await pool.execute(
                    "TRUNCATE registry.registration, registry.membership, registry.erasure, registry.outbox")
            }
        }
    }

    /// Runs all steps of `together` sequences.
    private static func play(seed: UInt64, _ store: RegistrationStore, _ pool: PostgresPool) async throws {
        var random = SplitMix(seed: seed)
        let now = Timestamp.now
        var addressed: [Addressed] = []
        var models = (0..<together).map { RegistryModel(app: AppID(rawValue: "app-\($0)")!, cap: cap, now: now) }
        for step in 0..<steps {
            let time = Duration.seconds(86_400 * Int64.random(in: 1...80, using: &random))
            try await pass(time, pool)
            for index in models.indices { models[index].pass(time) }
            for index in addressed.indices { addressed[index].registeredAt = addressed[index].registeredAt - time }
            let operations = models.map { RegistryOperation.random(app: $0.app, now: now, using: &random) }
            try await carryOut(operations, on: &models, store, "seed \(seed), step \(step)")
            if Bool.random(using: &random) {
                let forgotten = models.indices.reduce(into: Set<UUID>()) { $0.formUnion(models[$1].sweep()) }
                let count = try await sweep(now: now, pool)
                try #require(count == forgotten.count, "seed \(seed), step \(step)")
                try await forgetRevocations(of: forgotten, pool)
                let left = models.indices.reduce(0) { $0 + models[$1].forgetMemberships() }
                let walk = try await RetentionFixture.walk(HistoryStore(pool), now: now)
                try #require(walk.memberships == left, "seed \(seed), step \(step)")
                addressed.removeAll { forgotten.contains($0.device) }
            }
            try await compare(answersOf: models, store, "seed \(seed), step \(step)")
            for model in models { addressed += model.addressed }
        }
        try await compare(rowsOf: models, store, "seed \(seed)")
        try await check(addressed: addressed, store, "seed \(seed)")
    }

    /// Moves all stored times into the past.
    private static func pass(_ time: Duration, _ pool: PostgresPool) async throws {
        try await pool.transaction { transaction in
            try await transaction.execute("SET LOCAL session_replication_role = replica")
            try await transaction.execute(
                """
                UPDATE registry.registration SET registered_at = registered_at - \(time)::interval,
                    state_changed_at = state_changed_at - \(time)::interval,
                    ended_at = ended_at - \(time)::interval, stale_since = stale_since - \(time)::interval,
                    fallback_until = fallback_until - \(time)::interval
                """)
            try await transaction.execute(
                """
                UPDATE registry.erasure
                SET erased_at = erased_at - \(time)::interval, noted_at = noted_at - \(time)::interval
                """)
            try await transaction.execute("UPDATE registry.membership SET at = at - \(time)::interval")
            try await transaction.execute(
                "UPDATE registry.outbox SET revokes = revokes - \(time)::interval WHERE revokes IS NOT NULL")
        }
    }

    /// Sweeps until nothing is deleted: a successor may be deleted in a later step than its moved registration is
    /// visited.
    ///
    /// - Returns: the number of deleted registrations.
    private static func sweep(now: Timestamp, _ pool: PostgresPool) async throws -> Int {
        var sum = 0
        while true {
            let deleted = try await RetentionFixture.sweep(pool, step: 500, now: now)
            guard deleted > 0 else { return sum }
            sum += deleted
        }
    }

    /// Forgets revocations, as senders do after days.
    private static func forgetRevocations(of devices: Set<UUID>, _ pool: PostgresPool) async throws {
        try await pool.execute(
            "UPDATE registry.outbox SET revokes = NULL WHERE device_id = ANY (\(Array(devices))::uuid[])")
    }

    private static func carryOut(
        _ operations: [RegistryOperation], on models: inout [RegistryModel], _ store: RegistrationStore, _ place: String
    ) async throws {
        var batches: (claims: [RegistrationRequest], departures: [RegistrationRequest], invalidations: [Invalidation]) =
            ([], [], [])
        var changes: [MembershipStore.Change] = []
        var expected: (taken: Set<UUID>, gone: Set<UUID>, changed: Int) = ([], [], 0)
        for (index, operation) in operations.enumerated() {
            switch operation {
            case .register(let claims):
                batches.claims += claims
                for claim in claims { expected.taken.formUnion(models[index].take([claim])) }
            case .unregister(let claim):
                batches.departures.append(claim)
                models[index].unregister(claim)
            case .deactivate(let device, let since):
                batches.invalidations.append(
                    Invalidation(
                        app: models[index].app, device: device, notRegisteredSince: since, reason: "Unregistered"))
                if models[index].deactivate(device, since: since) { expected.gone.insert(device) }
            case .correct(let device, let environment):
                let moved = try await store.correct(device: device, of: models[index].app, to: environment)
                #expect(moved == models[index].correct(device, to: environment), "\(place), app \(index)")
            case .erase(let user, let moment):
                let count = try await store.erase(AppUser(app: models[index].app, user: user), at: moment)
                #expect(count == models[index].erase(user, at: moment), "\(place), app \(index)")
            case .replace(let id, let user, let claims):
                let answer = try await store.replace(
                    .init(app: models[index].app, id: id), of: user, with: claims, at: models[index].now)
                let model = models[index].replace(id, of: user, with: claims)
                #expect(Set(answer.records.map(\.registration.device)) == model.devices, "\(place), app \(index)")
                #expect(answer.isNew == model.isNew, "\(place), app \(index)")
            case .leave(let id, let user):
                try await store.end(.init(app: models[index].app, id: id), of: user, at: models[index].now)
                models[index].leave(id, user)
            case .change(let said):
                changes += said.map { .init(app: models[index].app, change: $0) }
                expected.changed += models[index].apply(said)
            }
        }
        #expect(try await store.register(batches.claims) == expected.taken, "\(place)")
        try await store.unregister(batches.departures)
        #expect(try await store.deactivate(batches.invalidations) == expected.gone, "\(place)")
        let memberships = MembershipStore(store.database)
        #expect(try await memberships.apply(changes) == expected.changed, "\(place)")
        for (model, operation) in zip(models, operations) {
            guard case .change(let said) = operation else { continue }
            for user in Set(said.map(\.user)) {
                let topics = Set(try await memberships.topics(of: AppUser(app: model.app, user: user)))
                try #require(topics == model.topics(of: user), "\(place), \(model.app), user \(user)")
            }
        }
    }

    private static func compare(
        answersOf models: [RegistryModel], _ store: RegistrationStore, _ place: String
    ) async throws {
        let users = ["a", "b", "c"].map { UserID(rawValue: $0)! }
        let keys = models.flatMap { model in users.map { AppUser(app: model.app, user: $0) } }
        let devices = Dictionary(uniqueKeysWithValues: zip(keys, try await store.devices(of: keys)))
        for (index, model) in models.enumerated() {
            for user in users {
                let found = Set(devices[AppUser(app: model.app, user: user)]!.map(\.device))
                // The first difference ends the test, since later ones follow from it.
                try #require(found == model.devices(of: user), "\(place), app \(index), user \(user)")
            }
        }
    }

    /// Compares all rows with their times, and all events in order.
    private static func compare(
        rowsOf models: [RegistryModel], _ store: RegistrationStore, _ place: String
    ) async throws {
        let pool = store.database
        let rows = try await StoredRow.all(store)
        let announced = try await StoredRow.announced(pool)
        let revoked = try await StoredRow.revoked(pool)
        let words = try await StoredRow.words(pool)
        for (index, model) in models.enumerated() {
            try #require(rows[model.app, default: [:]] == model.rows, "\(place), app \(index)")
            let told = Dictionary(grouping: model.announced, by: \.device)
            try #require(announced[model.app, default: [:]] == told, "\(place), app \(index)")
            try #require(revoked[model.app, default: [:]] == model.revoked, "\(place), app \(index)")
            try #require(words[model.app, default: [:]] == model.words, "\(place), app \(index)")
        }
    }

    /// Checks the senders' rule: each current user gets pushes, and no former user does.
    private static func check(
        addressed: [Addressed], _ store: RegistrationStore, _ place: String
    ) async throws {
        let revoked = try await StoredRow.revoked(store.database)
        let rows = try await StoredRow.all(store)
        for (app, rows) in rows {
            for row in rows.values where row.state == .active {
                let limit = revoked[app]?[row.device]
                try #require(
                    limit.map { row.registeredAt > $0 } ?? true, "\(place), \(app), the current user is revoked")
            }
        }
        for target in addressed {
            guard let row = rows[target.app]?[target.device], row.state == .active, row.user != target.user else {
                continue
            }
            let limit = try #require(revoked[target.app]?[target.device], "\(place), \(target.app)")
            try #require(target.registeredAt <= limit, "\(place), \(target.app), a former user is not revoked")
        }
    }

    /// A target of a push made at some step.
    struct Addressed: Hashable {
        var app: AppID
        var device: UUID
        var user: UserID
        var registeredAt: Timestamp
    }
}

/// Reads the tables in the model's types.
private enum StoredRow {
    static func all(_ store: RegistrationStore) async throws -> [AppID: [UUID: RegistryModel.Row]] {
        var all: [AppID: [UUID: RegistryModel.Row]] = [:]
        for row in try await store.database.query("SELECT * FROM registry.registration") {
            let device = try row.decode(UUID.self, at: "device_id")
            let app = try row.decode(AppID.self, at: "app")
            let state = try row.decode(RegistrationState.self, at: "state")
            all[app, default: [:]][device] = RegistryModel.Row(
                device: device, user: try row.decode(at: "user_id"), provider: try row.decode(at: "provider"),
                environment: try row.decode(at: "environment"),
                token: try row.decode(String?.self, at: "token").map {
                    try store.tokens.open($0, device: device, app: app)
                },
                kind: try row.decode(at: "kind"), installation: try row.decode(at: "installation"),
                scope: try row.decode(at: "scope"),
                registeredAt: Timestamp(try row.decode(Date.self, at: "registered_at")), state: state,
                endedAt: try row.decode(Date?.self, at: "ended_at").map(Timestamp.init),
                successor: try row.decode(at: "successor"),
                staleSince: try row.decode(Date?.self, at: "stale_since").map(Timestamp.init),
                fallbackUntil: try row.decode(Date?.self, at: "fallback_until").map(Timestamp.init))
        }
        return all
    }

    /// The registration time up to which pushes to each device are revoked.
    static func revoked(_ pool: PostgresPool) async throws -> [AppID: [UUID: Timestamp]] {
        var all: [AppID: [UUID: Timestamp]] = [:]
        let query: SQL = """
            SELECT app, device_id, max(revokes) AS revokes FROM registry.outbox
            WHERE revokes IS NOT NULL GROUP BY app, device_id
            """
        for row in try await pool.query(query) {
            all[try row.decode(AppID.self, at: "app"), default: [:]][try row.decode(UUID.self, at: "device_id")] =
                Timestamp(try row.decode(Date.self, at: "revokes"))
        }
        return all
    }

    /// The last change of each membership.
    static func words(_ pool: PostgresPool) async throws -> [AppID: [RegistryModel.Membership: RegistryModel.Word]] {
        var all: [AppID: [RegistryModel.Membership: RegistryModel.Word]] = [:]
        for row in try await pool.query("SELECT * FROM registry.membership") {
            let name = try row.decode(GroupName.self, at: "name")
            let isTopic = try row.decode(String.self, at: "kind") == "topic"
            let membership = RegistryModel.Membership(
                user: try row.decode(at: "user_id"), group: isTopic ? .topic(name) : .tag(name))
            all[try row.decode(AppID.self, at: "app"), default: [:]][membership] = RegistryModel.Word(
                joins: try row.decode(at: "active"), at: Timestamp(try row.decode(Date.self, at: "at")))
        }
        return all
    }

    /// The events of each registration, in order.
    static func announced(_ pool: PostgresPool) async throws -> [AppID: [UUID: [RegistryModel.Announced]]] {
        var all: [AppID: [UUID: [RegistryModel.Announced]]] = [:]
        let changes: SQL = """
            SELECT * FROM registry.outbox
            WHERE device_id IS NOT NULL AND reason IS DISTINCT FROM 'its user has left the device' ORDER BY id
            """
        for row in try await pool.query(changes) {
            let device = try row.decode(UUID.self, at: "device_id")
            all[try row.decode(AppID.self, at: "app"), default: [:]][device, default: []].append(
                RegistryModel.Announced(
                    device: device, user: try row.decode(at: "user_id"), change: try row.decode(at: "past")))
        }
        return all
    }
}
