import Foundation
import HTTPTypes
import HummingbirdTesting
import NIOCore
import Providers
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Web Push subscriptions of browsers as registrations.
@Suite(.timeLimit(.minutes(2))) struct WebPushRegistrationTests {
    private static let app = AppID(rawValue: "shared")!
    private static let path = "/v1/installations/browser"
    /// The key of RFC 8291, Appendix A.
    private static let key = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"

    private static func body(
        _ endpoint: String = "https://push.example.net/secret-path", expires: String = "null", key: String = key,
        auth: String = "BTBZMqHH6r4Tts7J_aSIgg"
    ) -> String {
        #"""
        {"registrations":[{"kind":"web-push","subscription":{"endpoint":"\#(endpoint)","expirationTime":\#(expires),
            "keys":{"p256dh":"\#(key)","auth":"\#(auth)"}}}]}
        """#
    }

    private static func put(
        _ body: String, by user: String = "a", to client: any TestClientProtocol
    ) async throws -> (status: HTTPResponse.Status, answer: JSONValue) {
        let bearer = try await BearerKeys.shared(["sub": .string(user)])
        return try await client.execute(
            uri: path, method: .put, headers: RoutesTests.headers(bearer), body: ByteBuffer(string: body)
        ) { ($0.status, try RoutesTests.json($0)) }
    }

    @Test func `a browser registers its subscription, and the answer does not reveal it`() async throws {
        try await RoutesTests.withRoutes { client, store in
            let (status, answer) = try await Self.put(Self.body(), to: client)
            #expect(status == .created)
            let registration = answer["registrations"]?.array?.first
            #expect(registration?["kind"] == "web-push" && registration?["provider"] == "webpush")
            #expect(!"\(answer)".contains("secret-path") && !"\(answer)".contains("BTBZ"))
            let devices = try await store.devices(of: [StoreFixture.user("a", app: Self.app)])[0]
            #expect(devices.map(\.platform) == [.web] && devices.map(\.environment) == [.production])
            // The sender reads the same subscription from the token.
            let subscription = try WebPushSubscription(text: try #require(devices.first).token.secret)
            #expect(subscription.endpoint.secret == "https://push.example.net/secret-path")
        }
    }

    @Test func `a browser that changes hands gets pushes of its new user only, also with another expiry`()
        async throws
    {
        try await RoutesTests.withRoutes { client, store in
            _ = try await Self.put(Self.body(expires: "4102444800000"), by: "a", to: client)
            _ = try await Self.put(Self.body(expires: "4102444900000.5"), by: "b", to: client)
            #expect(try await store.tokens(of: "a", app: Self.app) == [])
            #expect(try await store.tokens(of: "b", app: Self.app).count == 1)
        }
    }

    @Test func `an app without a Web Push key takes no subscription, and says so`() async throws {
        let terms = WebPushTerms(isServed: { _ in false })
        try await RoutesTests.withRoutes(webPush: terms) { client, store in
            let (status, answer) = try await Self.put(Self.body(), to: client)
            #expect(status == .unprocessableContent)
            #expect(answer["detail"]?.string?.hasPrefix("registrations[0].kind: the app has no Web Push key") == true)
            #expect(try await store.tokens(of: "a", app: Self.app) == [])
        }
    }

    @Test(arguments: [
        (body("http://push.example.net/x"), "endpoint: http is for tests"),
        (body("https://10.0.0.1/x"), "endpoint: 10.0.0.1 is a private address"),
        (body("https://[::1]/x"), "endpoint: ::1 is a loopback address"),
        (body("https://metadata.internal/x"), "endpoint: metadata.internal is a name of a private network"),
        (body("https://permanently-removed.invalid/x"), "endpoint: permanently-removed.invalid is no push service"),
        (body("https://push.example.net:22/x"), "endpoint: its port 22"),
        (body(key: "BCVx"), "keys.p256dh: it has 3 bytes instead of 65"),
        (body(auth: "??"), "keys.auth: it is not base64url"),
        (body(expires: #""soon""#), "expirationTime: it is neither null"),
        (#"{"registrations":[{"kind":"web-push"}]}"#, "registrations[0].subscription is missing"),
        (#"{"registrations":[{"kind":"web-push","token":"x"}]}"#, "registrations[0] is invalid: has an unknown member"),
    ])
    func `a wrong subscription is refused with the member and the fault`(body: String, problem: String) {
        let error = #expect(throws: WireError.self) { try InstallationBody(Array(body.utf8)) }
        #expect(error?.description.contains(problem) == true, "\(String(describing: error))")
        #expect(error?.description.contains("secret-path") == false)
    }

    @Test func `a subscription for tests may name this machine, if the operator permits it`() throws {
        let body = Array(Self.body("https://127.0.0.1:9446/x").utf8)
        #expect(try InstallationBody(body, policy: .init(privateNetworks: true)).webPush == "registrations[0].kind")
    }

    @Test func `a subscription ends when it expires, and a later registration revives it`() async throws {
        try await StoreFixture.withStore { store, pool in
            let now = Timestamp.now
            var (short, long) = (
                StoreFixture.claim("a", "{1}", .webpush, on: "x"), StoreFixture.claim("a", "{2}", .webpush, on: "y")
            )
            short.expiresAt = now + .seconds(60)
            long.expiresAt = now + .seconds(3600)
            try await store.register([short, long, StoreFixture.claim("a", "{3}", .webpush, on: "z")])
            try await pool.execute(
                "UPDATE registry.registration SET expires_at = now() - interval '1 minute' WHERE token = '{1}'")
            _ = try await SweepStore(pool).advance(now: .now)
            #expect(try await store.tokens(of: "a") == ["{2}", "{3}"])
            let ended = try await store.records(of: StoreFixture.user("a")).first { $0.state == .stale }
            #expect(ended?.reason == "the browser's subscription expired")
            short.expiresAt = nil
            try await store.register([short])
            _ = try await SweepStore(pool).advance(now: .now + .seconds(7200))
            #expect(try await store.tokens(of: "a").contains("{1}"))
        }
    }

    @Test func `a push service's 410 ends the registration, unless the browser registered again since`() async throws {
        try await StoreFixture.withStore { store, _ in
            let claim = StoreFixture.claim("a", "{1}", .webpush)
            try await store.register([claim])
            let before = Timestamp.now + .seconds(-60)
            func gone(_ since: Timestamp) -> Invalidation {
                Invalidation(app: claim.app, device: claim.device, notRegisteredSince: since, reason: "HTTP 410")
            }
            #expect(try await store.deactivate([gone(before)]).isEmpty)
            #expect(try await store.tokens(of: "a") == ["{1}"])
            #expect(try await store.deactivate([gone(Timestamp.now + .seconds(60))]) == [claim.device])
            #expect(try await store.tokens(of: "a") == [])
        }
    }

    @Test func `a subscription on the bus is refused, because nothing would check its endpoint`() {
        let payload = RegistrationPayload(
            user: UserID(rawValue: "a")!, provider: .webpush, environment: .production,
            token: DeviceToken(secret: "{}"))
        let error = #expect(throws: WireError.self) { try RegistrationRequest(payload, app: Self.app) }
        #expect(error?.description.contains("a browser registers its subscription over HTTP") == true)
    }
}
