import Foundation
import Testing

@testable import HeliographClient

@Suite struct TestPushTests {
    private static let body = """
        {"id": "1", "decision": "push", "reason": "wanted", "complete": true, "devices": [
            {"device": "00000000-0000-4000-8000-000000000001", "provider": "apns", "result": "unregistered",
             "reason": "Unregistered", "at": "2026-01-16T09:30:00.123Z"}]}
        """

    private func client(_ server: StubServer, events: URL?) -> HeliographClient {
        HeliographClient(
            configuration: .init(registry: server.url, rules: server.url, events: events), store: MemoryStore(),
            transport: URLSessionTransport(), clock: TestClock().clock, bearer: { _ in "token" })
    }

    @Test func `a test push returns each provider's answer`() async throws {
        let server = try StubServer { _, _ in .json(Self.body) }
        let push = try await client(server, events: server.url).sendTestPush(wait: 5)
        #expect(server.requests.first?.method == "POST" && server.requests.first?.path == "/v1/test-pushes?wait=5s")
        #expect(push.decision == "push" && push.complete && !push.isAccepted)
        #expect(push.devices.first?.result == "unregistered" && push.devices.first?.reason == "Unregistered")
    }

    @Test func `a limited test push is not repeated, and one without an address is not sent`() async throws {
        let server = try StubServer { _, _ in .json(429, #"{"detail": "too many requests"}"#) }
        await #expect(throws: HeliographError.self) { try await client(server, events: server.url).sendTestPush() }
        #expect(server.requests.count == 1)
        await #expect(throws: HeliographError.self) { try await client(server, events: nil).sendTestPush() }
        #expect(server.requests.count == 1)
    }
}
