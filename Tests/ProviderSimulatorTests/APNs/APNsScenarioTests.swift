import PushProtocol
import Testing

@testable import ProviderSimulator

/// Device tokens that encode a scenario.
@Suite struct APNsScenarioTests {
    static func actions(_ simulator: Simulator, _ token: String, connection: Int = 1) -> [WireAction] {
        simulator.respondAPNs(
            Fixture.push {
                $0.path = "/3/device/\(token)"
                $0.connection = connection
            }, in: .production)
    }

    static func simulatorWithScenarios() -> Simulator { Fixture.simulator { $0.readsTokenPrefixes = true } }

    @Test(arguments: [
        ("5100", 200, nil), ("5101", 400, "BadDeviceToken"), ("5102", 400, "DeviceTokenNotForTopic"),
        ("5103", 410, "Unregistered"), ("5104", 410, "ExpiredToken"), ("5105", 410, "Unregistered"),
        ("5106", 429, "TooManyRequests"), ("5107", 500, "InternalServerError"), ("5108", 503, "ServiceUnavailable"),
        ("5109", 503, "Shutdown"), ("510a", 200, nil), ("510e", 200, nil), ("5110", 403, "ExpiredProviderToken"),
        ("5111", 403, "InvalidProviderToken"), ("5112", 429, "TooManyProviderTokenUpdates"),
        ("5113", 413, "PayloadTooLarge"), ("5114", 400, nil), ("5115", 502, nil), ("5116", 400, "FutureReason"),
        ("5117", 400, "BadDeviceToken"), ("5118", 200, nil), ("5119", 200, nil), ("51ff", 200, nil),
    ]) func `each operation gets its response`(prefix: String, status: Int, reason: String?) {
        let answer = ReceivedResponse(Self.actions(Self.simulatorWithScenarios(), prefix + "0001ab"))
        #expect(answer?.status == status)
        #expect(answer?.reason == reason)
    }

    @Test func `fault operations produce their wire actions`() {
        let simulator = Self.simulatorWithScenarios()
        #expect(Self.actions(simulator, "510b0000") == [.silence])
        #expect(Self.actions(simulator, "510c0007") == [.reset(code: 7)])
        #expect(Self.actions(simulator, "510f0000") == [.dropConnection])
        #expect(Self.actions(simulator, "510a000a").contains(.wait(.milliseconds(100))))
        #expect(Self.actions(simulator, "51190005").contains(.limitStreams(5)))
        guard case .goAway(let goAway)? = Self.actions(simulator, "510d0000").first else {
            return #expect(Bool(false), "no GOAWAY")
        }
        #expect(goAway.lastStream == .before)
        #expect(String(decoding: goAway.debugData, as: UTF8.self) == #"{"reason":"Shutdown"}"#)
    }

    @Test func `a 410 has its timestamp in milliseconds`() {
        let simulator = Self.simulatorWithScenarios()
        let since = ReceivedResponse(Self.actions(simulator, "5103000a"))?.body?["timestamp"]?.int
        #expect(since == Fixture.now.milliseconds - 10_000)
        #expect(ReceivedResponse(Self.actions(simulator, "51050000"))?.body?["timestamp"] == nil)
    }

    @Test func `an argument of three fails three times for each token`() {
        let simulator = Self.simulatorWithScenarios()
        for token in ["51070003aa", "51070003bb"] {
            let statuses = (1...5).map { _ in ReceivedResponse(Self.actions(simulator, token))?.status }
            #expect(statuses == [500, 500, 500, 200, 200])
        }
    }

    @Test func `an expired provider token blocks its connection, and a new connection works`() {
        let simulator = Self.simulatorWithScenarios()
        let token = "51100000aa"
        #expect(ReceivedResponse(Self.actions(simulator, token))?.reason == "ExpiredProviderToken")
        #expect(ReceivedResponse(Self.actions(simulator, "aa"))?.reason == "ExpiredProviderToken")
        #expect(ReceivedResponse(Self.actions(simulator, token, connection: 2))?.status == 200)
    }

    @Test func `a token with the scenario prefix is ordinary unless scenarios are enabled`() {
        #expect(ReceivedResponse(Self.actions(Fixture.simulator(), "51010000ab"))?.status == 200)
    }
}
