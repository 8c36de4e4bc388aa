import FoundationEssentials
import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The APNs response vectors and the table of ProviderFacts.md §A.9.
@Suite struct APNsResponseVectorTests {
    private let codec = APNsCodec(topic: "com.example.app")

    private func consequence(
        _ status: Int, _ body: String = "", headers: [String: String] = [:], age: Duration = .seconds(1800)
    ) -> Consequence {
        codec.consequence(
            of: ProviderResponse(status: status, headers: headers, body: Array(body.utf8)),
            to: ResponseContext(target: .sample(), now: .sample, credentialAge: age))
    }

    private func consequence(_ status: Int, reason: String, age: Duration = .seconds(1800)) -> Consequence {
        consequence(status, #"{"reason":"\#(reason)"}"#, age: age)
    }

    @Test func `B01 B02: the id is the provider's in lower case, or ours without one`() {
        let id = "123E4567-E89B-12D3-A456-426614174000"
        #expect(
            consequence(200, headers: ["apns-id": id]) == .settle(.accepted(id: ProviderMessageID(id.lowercased()))))
        let target = Push.Target.sample()
        let answer = codec.consequence(
            of: ProviderResponse(status: 200), to: ResponseContext(target: target, now: .sample, credentialAge: .zero))
        #expect(answer == .settle(.accepted(id: ProviderMessageID(target.pushID))))
    }

    @Test func `B03 B05: a gone token is reported with its time, if there is one`() {
        #expect(
            consequence(410, #"{"reason":"Unregistered","timestamp":1767225000000}"#)
                == .settle(
                    .unregistered(since: Timestamp(milliseconds: 1_767_225_000_000), reason: "Unregistered")))
        #expect(
            consequence(410, reason: "ExpiredToken") == .settle(.unregistered(since: nil, reason: "ExpiredToken")))
        #expect(consequence(410) == .settle(.unregistered(since: nil, reason: "HTTP 410")))
        #expect(consequence(410, reason: "Gone") == .settle(.unregistered(since: nil, reason: "Gone")))
    }

    @Test func `B09 B10: an expired provider token is replaced, but a new one means a wrong clock`() {
        #expect(
            consequence(403, reason: "ExpiredProviderToken", age: .seconds(3660))
                == .reauthenticate(reason: "ExpiredProviderToken"))
        guard case .halt = consequence(403, reason: "ExpiredProviderToken", age: .seconds(300)) else {
            Issue.record("a young token was replaced")
            return
        }
    }

    @Test func `B12 B24: some reasons need another connection`() {
        #expect(
            consequence(403, reason: "UnrelatedKeyIdInToken")
                == .reconnect(reason: "UnrelatedKeyIdInToken", otherwise: .halts))
        #expect(
            consequence(400, reason: "IdleTimeout")
                == .reconnect(reason: "IdleTimeout", otherwise: .backsOff(floor: .seconds(10))))
    }

    @Test(arguments: ["BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken", "InvalidProviderToken"])
    func `B11 B13: a rejected key halts the route`(reason: String) {
        #expect(consequence(403, reason: reason) == .halt(reason: reason))
    }

    @Test func `B14: TooManyProviderTokenUpdates does not mint another token`() {
        #expect(
            consequence(429, reason: "TooManyProviderTokenUpdates")
                == .reconnectAndBackOff(floor: .seconds(10), reason: "TooManyProviderTokenUpdates"))
    }

    @Test func `B15: TooManyRequests throttles this token only`() {
        #expect(
            consequence(429, reason: "TooManyRequests") == .throttle(floor: .seconds(60), reason: "TooManyRequests"))
        #expect(consequence(429, "") == .throttle(floor: .seconds(60), reason: "HTTP 429"))
    }

    @Test func `B17 B18: server errors wait at least 15 minutes`() {
        for reason in ["InternalServerError", "ServiceUnavailable"] {
            #expect(consequence(500, reason: reason) == .backOff(floor: .seconds(900), reason: reason))
        }
        // The status decides when the reason is truncated.
        for (status, body) in [(500, ""), (503, #"{"reas"#)] {
            #expect(consequence(status, body) == .backOff(floor: .seconds(900), reason: "HTTP \(status)"))
        }
        #expect(consequence(503, reason: "Shutdown") == .reconnectAndBackOff(floor: .seconds(900), reason: "Shutdown"))
    }

    @Test func `B21: an unknown reason rejects the push and does not suspect the token`() {
        #expect(
            consequence(400, reason: "FutureReason") == .settle(.rejected(reason: "FutureReason", suspectToken: false)))
        #expect(
            consequence(400, #"{"reason":"a\nb\u0000 \u00e9"}"#)
                == .settle(.rejected(reason: "ab", suspectToken: false)))
    }

    @Test(arguments: [
        (502, "<html>Bad Gateway</html>"), (504, ""), (400, ""), (403, "not json"), (302, ""),
    ]) func `B22: a response that is not JSON is retried`(status: Int, body: String) {
        #expect(consequence(status, body) == .backOff(floor: .seconds(10), reason: "HTTP \(status)"))
    }

    @Test func `retry-after can lengthen a documented wait, not shorten it`() {
        for (retryAfter, wait) in [("1", 900), ("120", 900), ("1000", 1000)] {
            #expect(
                consequence(503, #"{"reason":"ServiceUnavailable"}"#, headers: ["retry-after": retryAfter])
                    == .backOff(floor: .seconds(wait), reason: "ServiceUnavailable"))
        }
        for (retryAfter, wait) in [("1", 60), ("120", 120)] {
            #expect(
                consequence(429, #"{"reason":"TooManyRequests"}"#, headers: ["retry-after": retryAfter])
                    == .throttle(floor: .seconds(wait), reason: "TooManyRequests"))
        }
    }

    /// The only reasons that count against a token.
    static let againstTheToken: Set<APNsReason> = [
        .badDeviceToken, .deviceTokenNotForTopic, .unregistered, .expiredToken,
    ]

    @Test(arguments: APNsReason.allCases) func `only reasons about the token count against it`(reason: APNsReason) {
        let status = reason == .unregistered || reason == .expiredToken ? 410 : 400
        let isAgainst =
            switch consequence(status, reason: reason.rawValue) {
            case .settle(.unregistered), .settle(.rejected(_, suspectToken: true)): true
            default: false
            }
        #expect(isAgainst == Self.againstTheToken.contains(reason))
    }

    /// Apple's "never retry" list.
    @Test(arguments: [
        "BadDeviceToken", "DeviceTokenNotForTopic", "ExpiredToken", "Unregistered", "PayloadTooLarge",
    ]) func `reasons on the never-retry list are final`(reason: String) {
        guard case .settle = consequence(400, reason: reason) else {
            Issue.record("\(reason) is not settled")
            return
        }
    }
}
