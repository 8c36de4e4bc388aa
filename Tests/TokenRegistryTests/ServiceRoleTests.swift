import Foundation
import HTTPAuth
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// The migrations give the service exactly the permissions it needs.
@Suite(.timeLimit(.minutes(2))) struct ServiceRoleTests {
    typealias Fixture = StoreFixture

    /// Runs every statement with the service's role.
    private static func asService(_ body: (PostgresPool, PostgresPool) async throws -> Void) async throws {
        try await TestSchema.registry.withDatabase { configuration in
            let separator = try TestDatabase.serverURL.contains("?") ? "&" : "?"
            let limited = try PostgresConfiguration(
                url: "\(TestDatabase.serverURL)\(separator)options=-c%20role%3Dheliograph_token_registry",
                applicationName: "tests"
            ).with(database: configuration.database)
            try await TestDatabase.withPool(configuration) { owner in
                try await TestDatabase.withPool(limited) { service in try await body(service, owner) }
            }
        }
    }

    @Test func `the service's role can delete old rows`() async throws {
        try await Self.asService { service, owner in
            let store = RegistrationStore(service)
            let claim = Fixture.claim("a", "01")
            try await store.register([claim])
            try await store.unregister([claim])
            try await RetentionFixture.age([claim], days: 91, owner)
            #expect(try await SweepStore(service).advance(now: .now) == .finished(changed: 0, deleted: 1))
            let past = Timestamp.now + .seconds(-86_400 * 500)
            let left = AudienceFixture.member("b", .topic(AudienceFixture.name("t")), joins: false, at: past)
            try await MembershipStore(service).apply([left])
            try await owner.execute(
                "INSERT INTO registry.import (id, name, started_at) VALUES ('x', 'x', \(past.date))")
            let (over, stuck) = (UUID(), UUID())
            for (id, finished) in [(over, past.date as Date?), (stuck, nil)] {
                try await owner.execute(
                    """
                    INSERT INTO registry.campaign (id, app, rule, notification, audience, state, created_at, finished_at)
                    VALUES (\(id), 'a', 'r', '', '', CASE WHEN \(finished)::timestamptz IS NULL THEN 'paused' ELSE 'done' END,
                        \(past.date), \(finished)::timestamptz)
                    """)
                try await owner.execute(
                    """
                    INSERT INTO registry.campaign_range (campaign, number, lower, position) VALUES (\(id), 0, '', '')
                    """)
            }
            let records = HistoryStore.Records(campaigns: 1, imports: 1, expired: [stuck])
            #expect(try await HistoryStore(service).advance(now: .now) == .finished(memberships: 1, records))
        }
    }

    @Test func `the service's role suffices for all operations`() async throws {
        try await Self.asService { service, _ in
            let store = RegistrationStore(service, devicesPerUser: 2)
            for token in ["01", "02", "03"] { try await store.register([Fixture.claim("a", token, on: "i\(token)")]) }
            let claim = Fixture.claim("a", "03")
            _ = try await store.correct(device: claim.device, of: Fixture.app, to: .development)
            try await store.unregister([Fixture.claim("a", "02")])
            let word = Invalidation(
                app: Fixture.app, device: claim.device, notRegisteredSince: .now, reason: "Unregistered")
            _ = try await store.deactivate([word])
            #expect(try await SweepStore(service).advance(now: .now) == .finished(changed: 0, deleted: 0))
            #expect(try await store.erase(Fixture.user("a")) == 4)
            #expect(try await store.records(of: Fixture.user("a")).count == 4)
            let topic = AudienceFixture.member("b", .topic(AudienceFixture.name("t")))
            #expect(try await MembershipStore(service).apply([topic]) == 1)
            let campaigns = CampaignStore(service)
            let list = AudienceFixture.notification(.users([AudienceFixture.user("b")], part: 1, of: 1), rate: 5)
            let cursor = try await campaigns.open(list, to: list.audience!)[0]
            guard case .step(let step) = try await CampaignSteps(store: campaigns).next(cursor, redelivered: false)
            else {
                Issue.record("no step ran")
                return
            }
            #expect(step.tally.without == 1)
            #expect(try await campaigns.finish(cursor.advanced(past: nil, by: step.tally)))
            for members in [Audience.Members.everyone, .group(.topic(AudienceFixture.name("t")))] {
                let other = AudienceFixture.notification(members, campaign: UUID())
                #expect(try await campaigns.open(other, to: other.audience!).count == 1)
            }
            let folder = try TemporaryFolder()
            let tokens = try TokenEncryptionFixture.keys(TokenEncryptionFixture.first, in: folder)
            #expect(try await TokenEncryptionFixture.walk(TokenRewriteStore(service, tokens: tokens)) == 0)
            let keys = APIKeyStore(service, schema: "registry")
            #expect(try await keys.record(of: "none") == nil)
            try await keys.recordUse("none")
            #expect(try await store.deactivate(claim.device, of: Fixture.app) == false)
            #expect(try await RegistrationCountStore(service).count().values.reduce(0, +) == 4)
            let drained = try await OutboxStore(service).drain { .init(numbers: $0.map(\.number)) }
            #expect(drained.map { $0.lent == $0.settled && $0.lent > 0 } == true)
        }
    }

    @Test func `the service's role cannot delete a registration, change an event, or alter tables`() async throws {
        try await Self.asService { service, owner in
            try await RegistrationStore(service).register([Fixture.claim("a", "01")])
            let forbidden: [SQL] = [
                "DELETE FROM registry.registration", "UPDATE registry.outbox SET user_id = 'b'",
                "ALTER TABLE registry.registration DISABLE TRIGGER USER", "DELETE FROM registry.erasure",
                "DELETE FROM registry.campaign", "DELETE FROM registry.campaign_range",
                "UPDATE registry.api_key SET revoked_at = NULL",
                "INSERT INTO registry.api_key (id, digest, name, operations) VALUES ('a', '', 'a', '{}')",
                "DELETE FROM registry.api_key", "SELECT * FROM registry.import",
            ]
            for statement in forbidden {
                let error = await #expect(throws: PostgresError.self) { try await service.execute(statement) }
                #expect(error?.code == .sqlState("42501"))
            }
            #expect(try await owner.query("SELECT count(*) FROM registry.outbox").single(Int.self) == 1)
        }
    }
}
