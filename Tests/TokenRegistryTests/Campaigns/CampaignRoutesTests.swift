import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Postgres
import PushProtocol
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Starts, reads and controls campaigns over HTTP.
@Suite(.timeLimit(.minutes(2))) struct CampaignRoutesTests {
    private static let id = "0c0c0c0c-0000-5000-8000-000000000001"
    private static let campaigns = "/v1/operator/campaigns"
    private static let campaign = "\(campaigns)/\(id)?app=family-portal"

    /// The published cursors. The broker refuses them while `refuses` is set.
    private final class Broker: Sendable {
        let published = Mutex<[CampaignCursor]>([])
        let refuses = Mutex(false)

        func publish(_ cursors: [CampaignCursor]) throws {
            if refuses.withLock({ $0 }) {
                throw APIError(status: .serviceUnavailable, message: "no confirm", retryAfter: 2)
            }
            published.withLock { $0 += cursors }
        }
    }

    private struct Fixture {
        let client: any TestClientProtocol
        let pool: PostgresPool
        let broker: Broker
        let key = APIKeyAuthenticatorTests.key(1)

        func ask(
            _ method: HTTPRequest.Method, _ uri: String, _ body: String? = nil, key: APIKey? = nil
        ) async throws -> (status: Int, body: JSONValue) {
            try await client.execute(
                uri: uri, method: method, headers: RoutesTests.headers((key ?? self.key).secret),
                body: body.map { ByteBuffer(string: $0) }
            ) { (Int($0.status.code), try RoutesTests.json($0)) }
        }

        /// The status, and the state or the problem.
        func act(_ action: String) async throws -> [String] {
            let answer = try await ask(
                .post, "\(CampaignRoutesTests.campaigns)/\(CampaignRoutesTests.id)/\(action)?app=family-portal")
            let text = answer.body["state"]?.string ?? answer.body["detail"]?.string
            return ["\(answer.status)", text ?? ""]
        }
    }

    private static func withFixture(_ body: @escaping @Sendable (Fixture) async throws -> Void) async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let gate = BearerAuthenticator(try await keys.verifier(), logger: .silent)
        let broker = Broker()
        try await StoreFixture.withStore { store, pool in
            let api = RegistryAPI(
                store: store, gate: gate,
                keys: APIKeyAuthenticator(
                    APIKeyStore(pool, schema: "registry"), master: nil, limit: RateLimiter("key", perMinute: 0),
                    logger: .silent),
                apps: [StoreFixture.app], publishCursors: { try broker.publish($0) })
            try await Application(router: api.router).test(.router) { client in
                let fixture = Fixture(client: client, pool: pool, broker: broker)
                try await APIKeyAuthenticatorTests.keep(fixture.key, [.readCounts, .sendNotifications], pool)
                try await body(fixture)
            }
        }
    }

    private static let body = #"{"everyone": true, "content": {"body": "B"}, "rate": 50, "holdOut": 10}"#

    @Test func `a campaign starts once, and a repeat of its request publishes cursors that have not started`()
        async throws
    {
        try await Self.withFixture { (fixture: Fixture) async throws in
            for count in 1...2 {
                let answer = try await fixture.ask(.put, Self.campaign, Self.body)
                #expect(answer.status == 200 && answer.body["state"] == "running")
                #expect(answer.body["id"] == .string(Self.id) && answer.body["rate"] == 50)
                #expect(answer.body["audience"] == "everyone, 10 % held out")
                let cursors = fixture.broker.published.withLock { $0 }
                #expect(cursors.count == count && cursors.last?.copy == Int64(count) && cursors.last?.range == 0)
            }
            let id = try #require(UUID(uuidString: Self.id))
            let stored = try await CampaignStore(fixture.pool).campaign(id)
            #expect(stored?.notification.content == Content(body: "B") && stored?.audience.holdOut == 10)
            let listed = try await fixture.ask(.get, "\(Self.campaigns)?app=family-portal&unfinished=true")
            let ids = (listed.body["campaigns"]?.array ?? []).compactMap { $0["id"]?.string }
            #expect(ids == [Self.id])
            let shown = try await fixture.ask(.get, Self.campaign)
            #expect(shown.body == listed.body["campaigns"]?.array?.first)
        }
    }

    @Test func `without the broker's confirm the request fails, and its repeat starts the campaign`() async throws {
        try await Self.withFixture { (fixture: Fixture) async throws in
            fixture.broker.refuses.withLock { $0 = true }
            #expect(try await fixture.ask(.put, Self.campaign, Self.body).status == 503)
            fixture.broker.refuses.withLock { $0 = false }
            #expect(try await fixture.ask(.put, Self.campaign, Self.body).status == 200)
            #expect(fixture.broker.published.withLock { $0.count } == 1)
        }
    }

    @Test func `an id names one campaign`() async throws {
        try await Self.withFixture { (fixture: Fixture) async throws in
            #expect(try await fixture.ask(.put, Self.campaign, Self.body).status == 200)
            for other in [
                #"{"everyone": true, "content": {"body": "C"}, "rate": 50, "holdOut": 10}"#,
                #"{"everyone": true, "content": {"body": "B"}, "rate": 50}"#,
                #"{"topic": "a", "content": {"body": "B"}, "rate": 50, "holdOut": 10}"#,
            ] {
                let answer = try await fixture.ask(.put, Self.campaign, other)
                #expect(answer.status == 409)
                #expect(answer.body["detail"]?.string?.contains("give each campaign an id of its own") == true)
            }
            #expect(fixture.broker.published.withLock { $0.count } == 1)
            // A list whose parts have not all arrived.
            try await fixture.pool.execute("UPDATE registry.campaign SET state = 'collecting', cut_off = NULL")
            #expect(try await fixture.ask(.put, Self.campaign, Self.body).status == 409)
            #expect(try await fixture.ask(.get, Self.campaign).body["state"] == "collecting")
        }
    }

    @Test func `pause, resume and cancel answer with the campaign, and a repeat with the same`() async throws {
        try await Self.withFixture { (fixture: Fixture) async throws in
            #expect(try await fixture.act("pause") == ["404", "the app has no such campaign"])
            _ = try await fixture.ask(.put, Self.campaign, Self.body)
            for (action, state) in [
                ("resume", "running"), ("pause", "paused"), ("pause", "paused"), ("resume", "running"),
                ("cancel", "cancelled"), ("cancel", "cancelled"),
            ] {
                #expect(try await fixture.act(action) == ["200", state])
            }
            #expect(
                try await fixture.act("pause")
                    == ["409", "the campaign is cancelled; only a running campaign can be paused"])
            #expect(
                try await fixture.act("resume")
                    == ["409", "the campaign is cancelled; only a paused campaign can be resumed"])
            try await fixture.pool.execute("UPDATE registry.campaign SET state = 'done'")
            #expect(
                try await fixture.act("cancel")
                    == ["409", "the campaign is done; a campaign that has ended cannot be cancelled"])
        }
    }

    @Test func `a campaign is visible to keys of its app only`() async throws {
        try await Self.withFixture { (fixture: Fixture) async throws in
            _ = try await fixture.ask(.put, Self.campaign, Self.body)
            let (other, reader) = (APIKeyAuthenticatorTests.key(2), APIKeyAuthenticatorTests.key(3))
            try await APIKeyAuthenticatorTests.keep(
                other, [.readCounts, .sendNotifications], app: AppID(rawValue: "other"), fixture.pool)
            try await APIKeyAuthenticatorTests.keep(reader, [.readCounts], fixture.pool)
            let elsewhere = "\(Self.campaigns)/\(Self.id)?app=other"
            #expect(try await fixture.ask(.get, Self.campaign, key: other).status == 403)
            #expect(try await fixture.ask(.get, elsewhere, key: other).status == 404)
            let cancel = "\(Self.campaigns)/\(Self.id)/cancel?app="
            #expect(try await fixture.ask(.post, "\(cancel)other", key: other).status == 404)
            #expect(try await fixture.ask(.post, "\(cancel)family-portal", key: reader).status == 403)
            #expect(try await fixture.ask(.put, Self.campaign, Self.body, key: reader).status == 403)
            #expect(try await fixture.ask(.get, Self.campaign, key: reader).body["state"] == "running")
            // An app that is not configured.
            #expect(try await fixture.ask(.put, elsewhere, Self.body, key: other).status == 404)
        }
    }

    @Test(arguments: ["unfinished=maybe", "limit=0", "limit=201"])
    func `a mistake in the query is reported`(query: String) async throws {
        try await Self.withFixture { (fixture: Fixture) async throws in
            let answer = try await fixture.ask(.get, "\(Self.campaigns)?app=family-portal&\(query)")
            #expect(answer.status == 400)
            #expect(answer.body["detail"]?.string?.contains(String(query.prefix { $0 != "=" })) == true)
        }
    }
}
