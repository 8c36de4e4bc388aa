import HTTPTypes
import Hummingbird
import HummingbirdTesting
import PushProtocol
import ServiceKit
import Testing

@testable import ProviderSimulator

@Suite struct ControlRoutesTests {
    static func withControl(
        _ simulator: Simulator = Fixture.simulator(), readiness: Readiness = Readiness(),
        _ body: @Sendable (any TestClientProtocol) async throws -> Void
    ) async throws {
        let app = Application(router: ControlRoutes(simulator: simulator, readiness: readiness).router)
        try await app.test(.router, body)
    }

    static func ask(
        _ client: any TestClientProtocol, _ method: HTTPRequest.Method, _ uri: String, _ body: String? = nil
    ) async throws -> (status: HTTPResponse.Status, json: JSONValue?) {
        let response = try await client.execute(uri: uri, method: method, body: body.map { ByteBuffer(string: $0) })
        return (response.status, try? ProviderJSON.value(of: Array(response.body.readableBytesView)))
    }

    @Test func `the log is filtered by token and sequence number, and counted`() async throws {
        let simulator = Fixture.simulator()
        for token in ["aa", "bb", "aa"] { _ = simulator.push { $0.path = "/3/device/\(token)" } }
        try await Self.withControl(simulator) { client async throws in
            let all = try await Self.ask(client, .get, "/apns/requests").json
            #expect(all?["requests"]?.array?.count == 3 && all?["last"] == 3)
            let own = try await Self.ask(client, .get, "/apns/requests?token=AA&since=1").json
            #expect(own?["requests"]?.array?.map { $0["sequence"]?.int } == [3])
            let first = try await Self.ask(client, .get, "/apns/requests?limit=1").json
            #expect(first?["last"] == 1)
            #expect(try await Self.ask(client, .get, "/apns/requests?count=true").json?["statuses"] == ["200": 3])
            #expect(try await Self.ask(client, .get, "/apns/requests?count=true&token=aa").json?["count"] == 2)
            #expect(try await Self.ask(client, .get, "/fcm/requests").json == ["requests": [], "last": 0])
            #expect(try await Self.ask(client, .delete, "/requests").status == .noContent)
            #expect(try await Self.ask(client, .get, "/apns/requests").json?["requests"] == [])
        }
    }

    @Test func `outcomes are scripted and removed`() async throws {
        let simulator = Fixture.simulator()
        try await Self.withControl(simulator) { client async throws in
            let body = #"{"provider":"apns","token":"\#(Fixture.token)","status":410}"#
            #expect(try await Self.ask(client, .post, "/outcomes", body).json == ["outcomes": 1])
            #expect(simulator.push()?.status == 410)
            #expect(try await Self.ask(client, .delete, "/outcomes").status == .noContent)
            #expect(simulator.push()?.status == 200)
        }
    }

    @Test func `a list of tokens is pinned completely or not at all`() async throws {
        let simulator = Fixture.simulator()
        try await Self.withControl(simulator) { client async throws in
            let pin = #"{"provider":"apns","token":"AA","environment":"sandbox"}"#
            let bad = #"{"provider":"apns","token":"AA","environment":"staging"}"#
            let refused = try await Self.ask(client, .post, "/tokens", "[\(pin),\(bad)]")
            #expect(refused.status == .badRequest)
            #expect(refused.json?["error"] == "[1].environment is none of production, development, sandbox")
            #expect(simulator.push { $0.path = "/3/device/aa" }?.status == 200)
            #expect(try await Self.ask(client, .post, "/tokens", pin).json == ["tokens": 1])
            #expect(simulator.push { $0.path = "/3/device/aa" }?.reason == "BadDeviceToken")
            #expect(simulator.push(.development) { $0.path = "/3/device/aa" }?.status == 200)
            #expect(try await Self.ask(client, .delete, "/tokens").status == .noContent)
            #expect(simulator.push { $0.path = "/3/device/aa" }?.status == 200)
        }
    }

    @Test(arguments: [
        (#"{"provider":"apns","token":"zz"}"#, "token is not a token of apns"),
        (#"{"provider":"apns","token":"aa","project":"p"}"#, "project has no meaning for apns"),
        (#"{"provider":"fcm","token":"t"}"#, "project is missing"),
        (#"{"provider":"apns","token":"aa","token_only":true}"#, "token_only has no meaning for apns"),
        (#"{"provider":"fcm","token":"t","project":"p","token_only":1}"#, "token_only is not true or false"),
        (
            #"{"provider":"fcm","token":"t","project":"p","fid_unregistered_ms":-1}"#,
            "fid_unregistered_ms is not a whole"
        ),
        (#"{"provider":"fcm","token":"t","project":"p","topic":"x"}"#, "topic has no meaning for fcm"),
        (#"{"token":"t"}"#, "provider is missing; it is apns or fcm"), ("{", "the body is not JSON at byte 1"),
    ]) func `an invalid pin is rejected with a reason`(body: String, problem: String) async throws {
        try await Self.withControl { client async throws in
            let answer = try await Self.ask(client, .post, "/tokens", body)
            #expect(answer.status == .badRequest)
            #expect(answer.json?["error"]?.string?.hasPrefix(problem) == true)
        }
    }

    @Test func `errors are JSON with a reason`() async throws {
        try await Self.withControl { client async throws in
            let unknown = try await Self.ask(client, .get, "/nothing")
            #expect(unknown.status == .notFound && unknown.json == ["error": "no route for GET /nothing"])
            let query = try await Self.ask(client, .get, "/apns/requests?sincee=1")
            #expect(query.status == .badRequest)
            #expect(
                query.json?["error"]
                    == "sincee is unknown; known are app, connection, count, environment, fault, id, limit, reason, since, status, token"
            )
            #expect(try await Self.ask(client, .get, "/apns/requests?limit=-1").status == .badRequest)
            #expect(try await Self.ask(client, .get, "/apns/requests?count=yes").status == .badRequest)
            #expect(try await Self.ask(client, .post, "/outcomes", "{").status == .badRequest)
            let large = try await Self.ask(client, .post, "/outcomes", String(repeating: " ", count: 5 << 20))
            #expect(large.status == .contentTooLarge && large.json?["error"] != nil)
        }
    }

    @Test func `devices are listed with their last notification`() async throws {
        let simulator = Fixture.simulator()
        _ = simulator.push()
        try await Self.withControl(simulator) { client async throws in
            let device = try await Self.ask(client, .get, "/devices").json?["devices"]?.array?.first
            #expect(device?["token"]?.string == Fixture.token && device?["delivered"] == 1)
            #expect(device?["last"]?["title"] == "Hi" && device?["last"]?["body"] == "Yo")
        }
    }

    @Test func `access tokens are revoked`() async throws {
        let simulator = Fixture.simulator()
        let token = simulator.state.accessTokens.issue(project: "p", lifetime: 60, at: Fixture.now)
        try await Self.withControl(simulator) { client async throws in
            #expect(try await Self.ask(client, .delete, "/access-tokens").status == .noContent)
            #expect(simulator.state.accessTokens.grant(for: token, at: Fixture.now) == nil)
        }
    }

    @Test func `the simulator is ready when the provider ports listen`() async throws {
        let readiness = Readiness()
        let condition = readiness.condition("apns", .waiting("not listening yet"))
        try await Self.withControl(readiness: readiness) { client async throws in
            #expect(try await Self.ask(client, .get, "/health/live").status == .ok)
            #expect(try await Self.ask(client, .get, "/health/ready").status == .serviceUnavailable)
            condition.set(.holds)
            #expect(try await Self.ask(client, .get, "/health/ready").json == ["ready": true])
        }
    }
}
