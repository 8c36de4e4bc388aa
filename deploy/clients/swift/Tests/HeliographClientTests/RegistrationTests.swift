import Foundation
import Testing

@testable import HeliographClient

@Suite struct RegistrationTests {
    @Test func `a token is registered once a user is signed in, and only once`() async throws {
        let server = try StubServer { _, _ in .json("{}") }
        let client = makeClient(server)
        #expect(try await client.setToken(alert) == false)
        #expect(server.requests.isEmpty)
        #expect(try await client.signIn(as: "456", details: english))
        #expect(try await client.setToken(alert) == false)
        #expect(try await client.signIn(as: "456", details: english) == false)
        let request = try #require(server.requests.first)
        #expect(server.requests.count == 1)
        #expect(request.method == "PUT" && request.headers["authorization"] == "Bearer old")
        #expect(request.path == "/v1/installations/\(await client.installation)")
        let body = try JSONDecoder().decode(JSONValue.self, from: request.body)
        #expect(
            body == [
                "locale": "en-GB", "time_zone": "Europe/London", "app_version": "1.0",
                "registrations": [["kind": "alert", "token": "aa11", "environment": "production"]],
            ])
    }

    @Test func `a rotated token replaces the one of its kind and scope`() async throws {
        let server = try StubServer { _, _ in .json("{}") }
        let client = makeClient(server)
        try await client.signIn(as: "456", details: english)
        try await client.setToken(alert)
        try await client.setToken(
            DeviceToken(kind: "live-activity", token: "bb", environment: "production", scope: "1"))
        #expect(try await client.setToken(DeviceToken(kind: "alert", token: "cc", environment: "production")))
        let last = try JSONDecoder().decode(JSONValue.self, from: #require(server.requests.last?.body))
        guard case .array(let registrations)? = last["registrations"] else { throw HeliographError.unreadable("body") }
        #expect(Set(registrations.compactMap { $0["token"]?.text }) == ["bb", "cc"])
        #expect(try await client.removeToken(kind: "live-activity", scope: "1"))
        #expect(try await client.removeToken(kind: "live-activity", scope: "1") == false)
    }

    @Test func `the state survives a restart, and an unchanged registration is sent again after a day`() async throws {
        let server = try StubServer { _, _ in .json("{}") }
        let store = MemoryStore()
        let clock = TestClock()
        let first = makeClient(server, store: store, clock: clock)
        try await first.setToken(alert)
        try await first.signIn(as: "456", details: english)
        let second = makeClient(server, store: store, clock: clock)
        #expect(await second.installation == first.installation)
        #expect(try await second.signIn(as: "456", details: english) == false)
        clock.advance(86_400)
        #expect(try await second.signIn(as: "456", details: english))
        #expect(server.requests.count == 2)
    }

    @Test func `another user on the device is registered at once`() async throws {
        let server = try StubServer { _, _ in .json("{}") }
        let client = makeClient(server)
        try await client.setToken(alert)
        try await client.signIn(as: "456", details: english)
        #expect(try await client.signIn(as: "457", details: english))
    }

    @Test func `a failed registration is repeated with growing pauses, and Retry-After is obeyed`() async throws {
        let server = try StubServer { _, number in
            switch number {
            case 0, 1: .json(503, "{}")
            case 2: StubServer.Reply(status: 429, headers: ["Retry-After": "7"])
            default: .json("{}")
            }
        }
        let clock = TestClock()
        let client = makeClient(server, clock: clock)
        try await client.setToken(alert)
        #expect(try await client.signIn(as: "456", details: english))
        // Without the random part: half of 2, 4 and 8 seconds.
        #expect(clock.pauses == [1, 2, 7 + 4])
    }

    @Test func `a registration that failed is sent at the next start`() async throws {
        let isAway = Flag(true)
        let server = try StubServer { _, _ in isAway.value ? .json(500, "{}") : .json("{}") }
        let store = MemoryStore()
        let client = makeClient(server, store: store)
        try await client.setToken(alert)
        await #expect(throws: HeliographError.unavailable(status: 500, detail: "no detail")) {
            try await client.signIn(as: "456", details: english)
        }
        #expect(server.requests.count == 8)
        isAway.value = false
        #expect(try await makeClient(server, store: store).signIn(as: "456", details: english))
    }

    @Test func `a refused registration is not repeated, and the error has the cause`() async throws {
        let server = try StubServer { _, _ in .json(422, #"{"detail": "the token is there twice"}"#) }
        let client = makeClient(server)
        try await client.setToken(alert)
        await #expect(throws: HeliographError.refused(status: 422, detail: "the token is there twice")) {
            try await client.signIn(as: "456", details: english)
        }
        #expect(server.requests.count == 1)
    }

    @Test func `a refused bearer token is fetched anew, once`() async throws {
        let server = try StubServer { request, _ in
            request.headers["authorization"] == "Bearer fresh" ? .json("{}") : .json(401, "{}")
        }
        let bearer = TestBearer()
        let client = makeClient(server, bearer: bearer)
        try await client.setToken(alert)
        #expect(try await client.signIn(as: "456", details: english))
        #expect(bearer.refusals == [false, true])
    }

    @Test func `a redirect is not followed`() async throws {
        let server = try StubServer { _, _ in
            StubServer.Reply(status: 307, headers: ["Location": "http://127.0.0.1:1/elsewhere"])
        }
        await #expect(throws: HeliographError.refused(status: 307, detail: "no detail")) {
            try await makeClient(server).inbox()
        }
    }

    @Test func `sign-out ends the registration, and the next sign-in registers the tokens again`() async throws {
        let server = try StubServer { request, _ in
            request.method == "DELETE" ? StubServer.Reply(status: 204) : .json("{}")
        }
        let client = makeClient(server)
        try await client.setToken(alert)
        try await client.signIn(as: "456", details: english)
        try await client.signOut()
        #expect(server.requests.map(\.method) == ["PUT", "DELETE"])
        #expect(try await client.setToken(alert) == false)
        #expect(try await client.signIn(as: "456", details: english))
    }

    @Test func `parallel changes end with the last one registered`() async throws {
        let server = try StubServer { _, _ in .json("{}") }
        let client = makeClient(server)
        try await client.signIn(as: "456", details: english)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                let token = DeviceToken(kind: "alert", token: "a\(number)", environment: "production")
                group.addTask { _ = try? await client.setToken(token) }
            }
        }
        // The server has the stored token: nothing is left to send.
        #expect(try await client.signIn(as: "456", details: english) == false)
    }
}

/// A switch that the server's threads read.
final class Flag: @unchecked Sendable {
    private let lock = NSLock()
    private var flag: Bool

    init(_ flag: Bool) { self.flag = flag }

    var value: Bool {
        get { lock.withLock { flag } }
        set { lock.withLock { flag = newValue } }
    }
}
