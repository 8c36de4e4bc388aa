import HTTPTypes
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct LimitSettingsTests {
    static func simulator(_ limits: String) throws -> Simulator {
        let simulator = Fixture.simulator()
        simulator.state.rateLimits.limits = try LimitSettings(try ProviderJSON.value(of: Array(limits.utf8)))
        return simulator
    }

    static func send(_ simulator: Simulator, _ token: String, at now: Timestamp = Fixture.now) -> ReceivedResponse? {
        var request = Fixture.send(["token": .string(token)], to: simulator, at: Fixture.now)
        request = ProviderRequest(
            connection: 1, stream: 1, method: request.method, path: request.path, headers: request.headers,
            body: request.body, receivedAt: now)
        return ReceivedResponse(simulator.respondGoogle(request))
    }

    @Test func `APNs limits the pushes a second of one device`() throws {
        let simulator = try Self.simulator(#"{"apns_device_per_second":2}"#)
        let reasons = (1...3).map { _ in simulator.push()?.reason }
        #expect(reasons == [nil, nil, "TooManyRequests"])
        #expect(simulator.push { $0.path = "/3/device/aa" }?.status == 200)
        #expect(simulator.push { $0.receivedAt = Fixture.now + .seconds(1) }?.status == 200)
    }

    @Test func `FCM limits a device's messages per minute and per hour`() throws {
        let simulator = try Self.simulator(#"{"fcm_device_per_minute":2,"fcm_device_per_hour":3}"#)
        #expect([1, 2].allSatisfy { _ in Self.send(simulator, "t")?.status == 200 })
        let over = Self.send(simulator, "t", at: Fixture.now + .seconds(20))
        #expect(over?.status == 429 && over?.headers["retry-after"] == "40")
        #expect(over?.body?["error"]?["details"]?.array?.first?["errorCode"] == "QUOTA_EXCEEDED")
        #expect(Self.send(simulator, "u")?.status == 200)
        #expect(Self.send(simulator, "t", at: Fixture.now + .seconds(60))?.status == 200)
        #expect(Self.send(simulator, "t", at: Fixture.now + .seconds(61))?.headers["retry-after"] == "3539")
    }

    @Test func `a project's quota refills after a minute, and rejections except 429 count`() throws {
        let simulator = try Self.simulator(#"{"fcm_project_per_minute":3,"fcm_retry_after":"date"}"#)
        #expect(Self.send(simulator, "a")?.status == 200)
        #expect(simulator.send(["token": "t", "topic": "x"])?.status == 400)
        #expect(Self.send(simulator, "b")?.status == 200)
        let over = Self.send(simulator, "c")
        #expect(over?.status == 429 && over?.headers["retry-after"] == "Thu, 01 Jan 2026 00:01:00 GMT")
        #expect(Self.send(simulator, "c", at: Fixture.now + .seconds(60))?.status == 200)
    }

    @Test func `errors reduce a connection's streams, then close it; 410 and acceptances do not count`() throws {
        let simulator = try Self.simulator(#"{"apns_errors":4}"#)
        _ = simulator.push()
        func actions(_ reason: String?) throws -> [WireAction] {
            simulator.state.outcomes.removeAll()
            if let reason { try simulator.play(#"{"provider":"apns","reason":"\#(reason)"}"#) }
            return simulator.respondAPNs(Fixture.push(), in: .production)
        }
        #expect(try actions("Unregistered").count == 1)
        #expect(try actions("BadTopic").count == 1)
        #expect(try actions("BadTopic").last == .limitStreams(1))
        #expect(try actions(nil).last == .limitStreams(1000))
        #expect(try actions("BadDeviceToken").last == .limitStreams(1))
        #expect(try actions("BadDeviceToken").last == .goAway(GoAway(lastStream: .included, code: 11)))
    }

    @Test func `limits are returned as set, and setting them resets the counters`() async throws {
        try await ControlRoutesTests.withControl { client async throws in
            let set = try await ControlRoutesTests.ask(client, .post, "/limits", #"{"fcm_device_per_hour":5000}"#)
            #expect(set.json?["fcm_device_per_hour"] == 5000 && set.json?["fcm_pings_per_minute"] == 2)
            let off = try await ControlRoutesTests.ask(client, .post, "/limits", #"{"fcm_pings_per_minute":null}"#)
            #expect(off.json?["fcm_pings_per_minute"] == .null && off.json?["fcm_device_per_hour"] == .null)
            #expect(try await ControlRoutesTests.ask(client, .delete, "/limits").status == .noContent)
            #expect(try await ControlRoutesTests.ask(client, .get, "/limits").json?["fcm_pings_per_minute"] == 2)
            let wrong = try await ControlRoutesTests.ask(client, .post, "/limits", #"{"apns_errors":0}"#)
            #expect(wrong.status == .badRequest)
        }
    }
}
