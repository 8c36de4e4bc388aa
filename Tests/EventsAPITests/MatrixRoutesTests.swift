import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import EventsAPI

/// `POST /_matrix/push/v1/notify`.
@Suite(.timeLimit(.minutes(2))) struct MatrixRoutesTests {
    /// The gateway, with the events that it published.
    final class Gateway: Sendable {
        let published = Mutex<[IncomingEvent]>([])
        /// The answer to each event.
        let refusal = Mutex<EventRefusal?>(nil)
        /// The users without a device.
        let withoutDevice = Mutex<Set<String>>([])
        /// Whether publishes wait.
        let isHeld = Mutex(false)
        let waiting = Mutex(0)

        func routes(key: String = MatrixNotifyTests.key) -> MatrixRoutes {
            MatrixRoutes(
                keys: MatrixPushkey.keys(key), isConfigured: { $0.rawValue == "demo" },
                publish: { [self] events in
                    waiting.withLock { $0 += 1 }
                    while isHeld.withLock(\.self) { await Task.yield() }
                    published.withLock { $0 += events }
                    return events.map { _ in refusal.withLock(\.self) }
                },
                hasNoDevice: { [self] event in
                    let user = event.data["users"]?.array?.first?.string ?? ""
                    return withoutDevice.withLock { $0.contains(user) }
                })
        }
    }

    struct Client: Sendable {
        let client: any TestClientProtocol

        func notify(_ body: String) async throws -> (status: Int, body: JSONValue) {
            try await client.execute(
                uri: "/_matrix/push/v1/notify", method: .post, headers: [.contentType: "application/json"],
                body: ByteBuffer(string: body)
            ) { response in
                if response.status.code >= 400 {
                    #expect(response.headers[.contentType] == "application/problem+json")
                }
                return (
                    response.status.code,
                    try WireCoding.decode(JSONValue.self, from: Array(response.body.readableBytesView))
                )
            }
        }
    }

    private func with(
        _ routes: MatrixRoutes, _ body: @escaping @Sendable (Client) async throws -> Void
    ) async throws {
        let router = Router(context: BasicRequestContext.self)
        routes.add(to: router)
        try await Application(router: router).test(.router) { try await body(Client(client: $0)) }
    }

    private static func body(_ pushkeys: String..., change: [String: JSONValue] = [:]) -> String {
        MatrixNotifyTests.body(pushkeys, change)
    }

    @Test func `a device's user gets one notification, also with several pushkeys and after a repeat`() async throws {
        let gateway = Gateway()
        try await with(gateway.routes()) { client in
            let (one, two) = (MatrixNotifyTests.pushkey(), MatrixNotifyTests.pushkey("demo", "458"))
            for _ in 0..<2 {
                let answer = try await client.notify(Self.body(one, two, one))
                #expect(answer.status == 200 && answer.body == ["rejected": []])
            }
            let events = gateway.published.withLock(\.self).map(\.event)
            #expect(events.map { $0.data["users"]?.array?.first?.string } == ["457", "458", "457", "458"])
            #expect(Set(events.map(\.id)).count == 2 && events.allSatisfy { $0.app.rawValue == "demo" })
        }
    }

    @Test func `a pushkey is rejected if its user has no device, and only after an event`() async throws {
        let gateway = Gateway()
        gateway.withoutDevice.withLock { $0 = ["458"] }
        try await with(gateway.routes()) { client in
            let (alive, dead) = (MatrixNotifyTests.pushkey(), MatrixNotifyTests.pushkey("demo", "458"))
            #expect(try await client.notify(Self.body(alive, dead)).body == ["rejected": [.string(dead)]])
            #expect(try await client.notify(Self.body(alive)).body == ["rejected": []])
            let badge = try await client.notify(Self.body(dead, change: ["event_id": .null]))
            #expect(badge.status == 200 && badge.body == ["rejected": []])
            #expect(gateway.published.withLock(\.count) == 4)
        }
    }

    @Test func `an unsigned pushkey and one of an unknown app are left out, and alone are an error`() async throws {
        let gateway = Gateway()
        try await with(gateway.routes()) { client in
            let foreign = MatrixNotifyTests.pushkey("other")
            let answer = try await client.notify(Self.body("apns-token", foreign, MatrixNotifyTests.pushkey()))
            #expect(answer.status == 200 && answer.body == ["rejected": []])
            #expect(gateway.published.withLock(\.count) == 1)
            // “rejected” would end the pusher of a user with a device.
            for pushkey in ["apns-token", foreign, ""] {
                let answer = try await client.notify(Self.body(pushkey))
                #expect(answer.status == 403 && answer.body["rejected"] == nil)
                #expect(answer.body["detail"]?.string?.contains("apns-token") == false)
            }
            #expect(gateway.published.withLock(\.count) == 1)
        }
    }

    @Test func `every documented status occurs, and no other`() async throws {
        let gateway = Gateway()
        let found = Mutex<Set<Int>>([])
        try await with(gateway.routes()) { client in
            let pushkey = MatrixNotifyTests.pushkey()
            var statuses = [
                try await client.notify(Self.body(pushkey)).status, try await client.notify("{").status,
                try await client.notify(Self.body("unsigned")).status,
                try await client.notify(String(repeating: " ", count: MatrixRoutes.maximumBody + 1)).status,
            ]
            gateway.refusal.withLock { $0 = .unavailable("no broker") }
            statuses.append(try await client.notify(Self.body(pushkey)).status)
            gateway.refusal.withLock { $0 = nil }
            // The bucket is refilled meanwhile.
            var limited = 200
            for _ in 0..<(10 * MatrixRoutes.userRequests) where limited == 200 {
                limited = try await client.notify(Self.body(pushkey)).status
            }
            statuses.append(limited)
            // Another user has a limit of its own.
            #expect(try await client.notify(Self.body(MatrixNotifyTests.pushkey("demo", "1"))).status == 200)
            found.withLock { [statuses] in $0.formUnion(statuses) }
        }
        try await with(.off) { client in
            let status = try await client.notify(Self.body(MatrixNotifyTests.pushkey())).status
            found.withLock { _ = $0.insert(status) }
        }
        #expect(found.withLock(\.self) == (try EventsOpenAPITests.operations()["POST /_matrix/push/v1/notify"]))
    }

    @Test func `requests beyond the maximum in progress get 503`() async throws {
        let gateway = Gateway()
        gateway.isHeld.withLock { $0 = true }
        try await with(gateway.routes()) { client in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for user in 0..<MatrixRoutes.maximumRequests {
                    let body = Self.body(MatrixNotifyTests.pushkey("demo", "u\(user)"))
                    group.addTask { try await client.notify(body).status }
                }
                try await eventually("all in progress", within: .seconds(60)) {
                    gateway.waiting.withLock(\.self) == MatrixRoutes.maximumRequests
                }
                #expect(try await client.notify(Self.body(MatrixNotifyTests.pushkey())).status == 503)
                gateway.isHeld.withLock { $0 = false }
                for try await status in group { #expect(status == 200) }
            }
        }
    }
}
