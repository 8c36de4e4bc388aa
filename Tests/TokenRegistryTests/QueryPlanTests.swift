import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport
import TokenEncryption

@testable import RegistryStore

/// On a large table, no statement of the hot paths reads the whole table.
@Suite(.timeLimit(.minutes(2))) struct QueryPlanTests {
    typealias Fixture = StoreFixture
    static let size = 60_000
    /// The end of a step of about 1000 rows.
    private static let sixtyFourth = UUID(uuidString: "04000000-0000-0000-0000-000000000000")!

    /// Fills the table: a third of the registrations have ended, half have an installation.
    private static func fill(_ pool: PostgresPool) async throws {
        for start in stride(from: 0, to: size, by: 10_000) {
            try await pool.transaction { transaction in
                // Suppress events for the bulk load.
                try await transaction.execute("SET LOCAL session_replication_role = replica")
                try await transaction.execute(
                    """
                    INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, kind,
                        installation, registered_at, state, state_reason, state_changed_at)
                    SELECT md5(n::text)::uuid, \(Fixture.app.rawValue), 'user-' || n / 2, 'apns', 'production',
                        md5(n::text), 'alert', CASE WHEN n % 2 = 0 THEN 'installation-' || n END,
                        now() - n * interval '1 minute', CASE WHEN n % 3 = 0 THEN 'signed-out' ELSE 'active' END,
                        CASE WHEN n % 3 = 0 THEN 'unregistered' END, now()
                    FROM generate_series(\(start), \(start + 9999)) AS n
                    """)
            }
        }
        try await pool.execute("ANALYZE registry.registration")
    }

    /// The statements of campaign steps.
    private static func walks(_ users: [AppUser]) -> [(String, SQL)] {
        let notification = AudienceFixture.notification(.everyone, devices: DeviceFilter(locale: ["de"]))
        let campaign = Campaign(notification: notification, audience: notification.audience!, cutOff: Date())
        let span = AudienceQueries.Span(after: "user-2", upTo: "user-3")
        return [
            ("the end of a page", AudienceQueries.end(of: span, in: Fixture.app, limit: 4000)),
            (
                "the end of an open page",
                AudienceQueries.end(of: .init(after: "user-2", upTo: nil), in: Fixture.app, limit: 1000)
            ),
            ("a page of everyone", AudienceQueries.everyone(in: span, of: campaign)),
            ("a page of a list", AudienceQueries.devices(of: users.map(\.user), of: campaign)),
        ]
    }

    /// With half a table of members, and a campaign's list.
    @Test func `memberships are found by an index`() async throws {
        try await Fixture.withStore { _, pool in
            try await pool.execute(
                """
                INSERT INTO registry.membership (app, kind, name, user_id, active, at)
                SELECT \(Fixture.app.rawValue), 'topic', 'topic-' || n % 20, 'user-' || n, true, now()
                FROM generate_series(1, 60000) AS n
                """)
            let campaign = UUID()
            try await pool.execute(
                "INSERT INTO registry.campaign (id, app, rule, notification, audience) VALUES (\(campaign), 'a', 'r', '', '')"
            )
            try await pool.execute(
                """
                INSERT INTO registry.campaign_member (campaign, user_id)
                SELECT \(campaign)::uuid, 'user-' || n FROM generate_series(1, 60000) AS n
                """)
            try await pool.execute("INSERT INTO registry.campaign_part (campaign, number) VALUES (\(campaign), 1)")
            try await pool.execute("ANALYZE registry.membership, registry.campaign_member, registry.campaign_part")
            let group = UserGroup.topic(AudienceFixture.name("topic-3"))
            let span = AudienceQueries.Span(after: "user-2", upTo: nil)
            for (what, statement) in [
                ("members", AudienceQueries.members(of: group, in: Fixture.app, span: span, limit: 500)),
                ("a list", AudienceQueries.listed(by: campaign, span: span, limit: 500)),
                ("one's own topics", MembershipStore.list(of: Fixture.user("user-7"))),
                ("forgetting a user's", MembershipStore.erasure(of: Fixture.user("user-7"), at: Date())),
                ("the end of a step of forgetting", CampaignStore.end(ofList: campaign, after: "user-2")),
                (
                    "forgetting a step of a list",
                    CampaignStore.listDeletion(of: campaign, after: "user-2", upTo: "user-3")
                ),
                ("forgetting a user's place in lists", CampaignStore.erasure(of: Fixture.user("user-7"))),
                ("joining", MembershipStore.upsert([AudienceFixture.member("user-7", group)])),
            ] {
                let plan = try await Self.plan(statement, pool)
                #expect(!plan.contains("Seq Scan on membership"), "\(what):\n\(plan)")
                #expect(!plan.contains("Seq Scan on campaign_member"), "\(what):\n\(plan)")
            }
        }
    }

    /// With nearly all memberships in one app, a third of them ended.
    @Test func `ended memberships and old records are found by an index`() async throws {
        try await Fixture.withStore { _, pool in
            try await pool.execute(
                """
                INSERT INTO registry.membership (app, kind, name, user_id, active, at)
                SELECT \(Fixture.app.rawValue), 'topic', 'topic-' || n % 20, 'user-' || n, n % 3 > 0,
                    now() - interval '1 year'
                FROM generate_series(1, 60000) AS n
                """)
            try await pool.execute(
                """
                INSERT INTO registry.campaign
                    (id, app, rule, notification, audience, state, created_at, finished_at)
                SELECT md5(n::text)::uuid, 'a', 'r', '', '', CASE WHEN n % 100 = 0 THEN 'running' ELSE 'done' END,
                    now() - n * interval '1 hour', CASE WHEN n % 100 > 0 THEN now() - n * interval '1 hour' END
                FROM generate_series(1, 20000) AS n
                """)
            try await pool.execute("ANALYZE registry.membership, registry.campaign")
            let place = HistoryStore.Place(
                app: Fixture.app.rawValue, kind: "topic", name: "topic-3", user: "user-1003")
            let end = HistoryStore.Place(
                app: Fixture.app.rawValue, kind: "topic", name: "topic-3", user: "user-22003")
            let old = Date().addingTimeInterval(-86_400 * 400)
            for (what, statement, index, bounds) in [
                ("the first step's end", HistoryStore.end(of: 1000, after: .init()), "membership_pkey", 1),
                ("a step's end", HistoryStore.end(of: 1000, after: place), "membership_pkey", 1),
                (
                    "the first step", HistoryStore.deletion(after: .init(), until: end, before: old),
                    "membership_pkey", 2
                ),
                ("a step", HistoryStore.deletion(after: place, until: end, before: old), "membership_pkey", 2),
                ("the last step", HistoryStore.deletion(after: place, until: nil, before: old), "membership_pkey", 1),
                ("old campaigns", HistoryStore.finished(before: old, limit: 1000), "campaign_finished_at", 0),
                ("what stands still", HistoryStore.expiry(before: old), "campaign_unfinished", 0),
            ] as [(String, SQL, String, Int)] {
                let plan = try await pool.transaction { transaction in
                    try await transaction.execute(HistoryStore.disablingSequentialScan)
                    return try await transaction.query("EXPLAIN \(statement)").map {
                        try $0.decode(String.self, at: 0)
                    }.joined(separator: "\n")
                }
                #expect(plan.contains(index) && !plan.contains("Seq Scan on"), "\(what):\n\(plan)")
                let condition = plan.split(separator: "\n").first { $0.contains("Index Cond: ") } ?? ""
                let rows = condition.components(separatedBy: "ROW(").count - 1
                #expect(rows == 2 * bounds, "\(what):\n\(plan)")
            }
        }
    }

    private static func plan(_ statement: SQL, _ pool: PostgresPool) async throws -> String {
        try await pool.query("EXPLAIN \(statement)").map { try $0.decode(String.self, at: 0) }.joined(separator: "\n")
    }

    @Test func `every statement of the hot paths uses an index`() async throws {
        try await Fixture.withStore { _, pool in
            try await Self.fill(pool)
            let claims = (0..<200).map {
                Fixture.claim("user-\($0)", String(format: "%04x", $0), on: "installation-\($0)", at: .now)
            }
            let users = claims.map { AppUser(app: $0.app, user: $0.user) }
            let devices = claims.map { ($0.device, $0) }
            let first = claims[0].device
            let installation = RegistrationStore.Installation(app: claims[0].app, id: claims[0].installation!)
            let cohort = FIDPreference.Cohort(app: Fixture.app, version: "5.0")
            let suspicions = claims.map {
                FIDStore.RefusedFID(app: $0.app, device: $0.device, at: .now, reason: "UNREGISTERED")
            }
            let statements: [(String, SQL)] =
                [
                    ("resolving 200 users", RegistrationStore.activeRegistrationsQuery(of: users)),
                    (
                        "resolving as many as there may be",
                        RegistrationStore.activeRegistrationsQuery(
                            of: (0..<RegistrationStore.usersPerQuery).map { Fixture.user("user-\($0 * 7)") })
                    ),
                    ("resolving one user", RegistrationStore.activeRegistrationsQuery(of: [users[0]])),
                    ("registering", RegistrationStore.upsert(devices, .none)),
                    (
                        "settling installations",
                        RegistrationStore.settle(
                            claims.map { .init(app: $0.app, id: $0.installation!) })
                    ),
                    ("evicting", RegistrationStore.eviction(of: users, beyond: 100)),
                    ("signing out what is not there", RegistrationStore.signOutInsertion(claims, .none)),
                    ("signing out", RegistrationStore.departure(claims.map { ($0.device, $0.owner, nil) })),
                    (
                        "deactivating",
                        RegistrationStore.invalidation(
                            claims.map { .init(app: $0.app, device: $0.device, notRegisteredSince: .now, reason: "r") })
                    ),
                    (
                        "correcting",
                        RegistrationStore.correction(
                            of: first, to: claims[1].device, in: .development, token: "ab")
                    ),
                    ("listing", RegistrationStore.historyQuery(of: users[0])),
                    ("reading one's own", RegistrationStore.userRegistrations(of: users[0])),
                    (
                        "reading an installation",
                        RegistrationStore.installationRegistrations(of: installation, by: users[0].user)
                    ),
                    (
                        "ending an installation",
                        RegistrationStore.ending(installation, of: users[0].user, except: [first], at: nil, .dropped)
                    ),
                    (
                        "keeping fallbacks",
                        RegistrationStore.fallbacks(on: installation, of: users[0].user, beside: [first], at: nil)
                    ),
                    ("ending suspected FIDs", FIDStore.ending(suspicions)),
                    ("suspecting FIDs", FIDStore.suspecting(suspicions)),
                    ("counting suspected FIDs", FIDStore.suspected(of: cohort)),
                    ("counting FIDs", FIDStore.known(of: cohort, limit: 100)),
                    ("ending fallbacks in the sweep", SweepStore.fallbackExpiry(after: first, until: first, now: .now)),
                    ("erasing", RegistrationStore.erasure(of: users[0], at: Date())),
                    ("a step of the sweep", SweepStore.end(of: 1000, after: first)),
                    ("marking in the sweep", SweepStore.marking(after: first, until: first, now: .now)),
                    (
                        "what ended in a step",
                        SweepStore.ended(after: SweepStore.first, until: Self.sixtyFourth, before: Date())
                    ),
                    (
                        "tokens to rewrite in a step",
                        TokenRewriteStore.others((SweepStore.first, Self.sixtyFourth), than: "k1")
                    ),
                    ("rewriting tokens", TokenRewriteStore.rewriting([first], ["a"], ["b"])),
                    ("counting tokens", TokenRewriteStore.counting((SweepStore.first, Self.sixtyFourth))),
                ] + Self.walks(users)
            for (what, statement) in statements {
                let plan = try await Self.plan(statement, pool)
                #expect(!plan.contains("Seq Scan on registration"), "\(what):\n\(plan)")
                #expect(plan.contains("registration_") || what == "registering", "\(what):\n\(plan)")
            }
        }
    }

    @Test func `a sequential scan would be detected`() async throws {
        try await Fixture.withStore { _, pool in
            try await Self.fill(pool)
            let plan = try await Self.plan("SELECT * FROM registry.registration WHERE token = 'x'", pool)
            #expect(plan.contains("Seq Scan on registration"))
        }
    }

    /// Registering again at each app launch thus changes no index (a heap-only update).
    @Test func `no index has a column that changes with each registration`() async throws {
        try await Fixture.withStore { _, pool in
            let indexes = try await pool.query("SELECT indexdef FROM pg_indexes WHERE tablename = 'registration'")
                .map { try $0.decode(String.self, at: 0) }
            #expect(indexes.count == 6)
            for column in ["registered_at", "stale_since", "ended_at", "state_changed_at", "app_version"] {
                #expect(!indexes.contains { $0.contains(column) }, "\(column)")
            }
        }
    }
}
