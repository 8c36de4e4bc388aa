import PushProtocol
import Testing

@testable import ProviderSimulator

/// The device tokens that spell what shall happen to them (push-protocols D.4).
@Suite struct APNsScenarioTests {
    static func acts(_ simulator: Simulator, _ token: String, connection: Int = 1) -> [Act] {
        simulator.answerAPNs(
            Fixture.push {
                $0.path = "/3/device/\(token)"
                $0.connection = connection
            }, in: .production)
    }

    static func willing() -> Simulator { Fixture.simulator { $0.readsTokenPrefixes = true } }

    @Test(arguments: [
        ("5100", 200, nil), ("5101", 400, "BadDeviceToken"), ("5102", 400, "DeviceTokenNotForTopic"),
        ("5103", 410, "Unregistered"), ("5104", 410, "ExpiredToken"), ("5105", 410, "Unregistered"),
        ("5106", 429, "TooManyRequests"), ("5107", 500, "InternalServerError"), ("5108", 503, "ServiceUnavailable"),
        ("5109", 503, "Shutdown"), ("510a", 200, nil), ("510e", 200, nil), ("5110", 403, "ExpiredProviderToken"),
        ("5111", 403, "InvalidProviderToken"), ("5112", 429, "TooManyProviderTokenUpdates"),
        ("5113", 413, "PayloadTooLarge"), ("5114", 400, nil), ("5115", 502, nil), ("5116", 400, "FutureReason"),
        ("5117", 400, "BadDeviceToken"), ("5118", 200, nil), ("5119", 200, nil), ("51ff", 200, nil),
    ]) func `an operation answers as it says`(prefix: String, status: Int, reason: String?) {
        let answer = Answer(Self.acts(Self.willing(), prefix + "0001ab"))
        #expect(answer?.status == status)
        #expect(answer?.reason == reason)
    }

    @Test func `the troubles are troubles`() {
        let simulator = Self.willing()
        #expect(Self.acts(simulator, "510b0000") == [.silence])
        #expect(Self.acts(simulator, "510c0007") == [.reset(code: 7)])
        #expect(Self.acts(simulator, "510f0000") == [.dropConnection])
        #expect(Self.acts(simulator, "510a000a").contains(.wait(.milliseconds(100))))
        #expect(Self.acts(simulator, "51190005").contains(.limitStreams(5)))
        guard case .goAway(let goAway)? = Self.acts(simulator, "510d0000").first else {
            return #expect(Bool(false), "no GOAWAY")
        }
        #expect(goAway.lastStream == .before)
        #expect(String(decoding: goAway.debugData, as: UTF8.self) == #"{"reason":"Shutdown"}"#)
    }

    @Test func `a 410 says since when, in milliseconds`() {
        let simulator = Self.willing()
        let since = Answer(Self.acts(simulator, "5103000a"))?.body?["timestamp"]?.int
        #expect(since == Fixture.now.milliseconds - 10_000)
        #expect(Answer(Self.acts(simulator, "51050000"))?.body?["timestamp"] == nil)
    }

    @Test func `an argument of three fails three times, each token for itself`() {
        let simulator = Self.willing()
        for token in ["51070003aa", "51070003bb"] {
            let statuses = (1...5).map { _ in Answer(Self.acts(simulator, token))?.status }
            #expect(statuses == [500, 500, 500, 200, 200])
        }
    }

    @Test func `an expired provider token wedges the connection, and a new one is fine`() {
        let simulator = Self.willing()
        let token = "51100000aa"
        #expect(Answer(Self.acts(simulator, token))?.reason == "ExpiredProviderToken")
        #expect(Answer(Self.acts(simulator, "aa"))?.reason == "ExpiredProviderToken")
        #expect(Answer(Self.acts(simulator, token, connection: 2))?.status == 200)
    }

    @Test func `a random token that begins so is an ordinary token unless scenarios are asked for`() {
        #expect(Answer(Self.acts(Fixture.simulator(), "51010000ab"))?.status == 200)
    }
}
