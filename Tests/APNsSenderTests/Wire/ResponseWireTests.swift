import FoundationEssentials
import Messaging
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import APNsSender

/// The response vectors (ProviderFacts.md §E.2) from the simulator's response to the outcome. Feedback's tests cover
/// the evaluation of the outcomes of B03 to B08.
@Suite(.timeLimit(.minutes(2))) struct ResponseWireTests {
    private let target = Push.Target.sample(registeredAt: Timestamp(milliseconds: 1_767_220_000_000))

    /// Sends one push with a scripted response. Passes the result and the requests to `check`.
    private func send(
        _ outcome: [String: JSONValue], lifetime: Duration? = nil, delivery: DeliveryPolicy? = nil,
        age: Duration = .zero,
        check: @Sendable (SenderUnderTest.Result, [JSONValue], SenderUnderTest) async throws -> Void
    ) async throws {
        try await SimulatedAPNs.run { apns, sender in
            if age > .zero {
                // Mints the token that must have this age.
                _ = try await sender.send(.sample(targets: [.sample(token: "ff")]))
                sender.time.advance(by: age)
            }
            let before = try await apns.requests().count
            try await apns.script(outcome, token: target.token.secret)
            let result = try await sender.send(
                .sample(expiresAt: lifetime.map { sender.time.now + $0 }, delivery: delivery, targets: [target]))
            try await check(result, Array(try await apns.requests().dropFirst(before)), sender)
        }
    }

    @Test func `B02: a response without an id is an acceptance`() async throws {
        try await send(["status": 200, "omit_id": true]) { result, _, _ in
            #expect(result.answers == [.accepted(id: ProviderMessageID(target.pushID))])
        }
    }

    @Test func `B03 B04: a gone token is reported with its time and the registration's`() async throws {
        try await send(["status": 410, "reason": "Unregistered", "timestamp": 1_767_225_000_000]) { result, _, _ in
            #expect(
                result.answers
                    == [.unregistered(since: Timestamp(milliseconds: 1_767_225_000_000), reason: "Unregistered")])
            #expect(result.outcomes[0].registeredAt == target.registeredAt)
            #expect(result.outcomes[0].device == target.device)
        }
    }

    @Test func `B05: an expired token without a time`() async throws {
        try await send(["status": 410, "reason": "ExpiredToken", "timestamp": nil]) { result, _, sender in
            #expect(result.answers == [.unregistered(since: nil, reason: "ExpiredToken")])
            #expect(sender.trouble() == nil)
        }
    }

    @Test(arguments: ["BadDeviceToken", "DeviceTokenNotForTopic"])
    func `B06 B07 B20: a doubt about one token is reported as suspect`(reason: String) async throws {
        try await send(["status": 400, "reason": .string(reason)]) { result, requests, sender in
            #expect(result.answers == [.rejected(reason: reason, suspectToken: true)])
            // A token unknown to this environment is tried in the other one, which does not know it either.
            #expect(
                requests.map { $0["environment"] == "production" }
                    == (reason == "BadDeviceToken" ? [true, false] : [true]))
            #expect(sender.trouble() == nil)
        }
    }

    @Test(arguments: [7, nil] as [Int?])
    func `S2: 25 invented tokens of one user, or of new registrations, do not halt the route`(owner: Int?) async throws
    {
        try await SimulatedAPNs.run { apns, sender in
            let invented = (0..<25).map {
                Push.Target.sample(token: String($0 + 0x1000_0000, radix: 16), owner: owner)
            }
            for target in invented {
                try await apns.script(["status": 400, "reason": "BadDeviceToken"], token: target.token.secret)
            }
            let result = try await sender.send(.sample(targets: invented))
            #expect(result.answers.map(\.disposition) == Array(repeating: .rejected, count: 25))
            #expect(result.remainder == nil)
            #expect(sender.trouble() == nil)
            let other = try await sender.send(.sample(targets: [.sample(token: "ff", owner: 8)]))
            #expect(other.answers.map(\.disposition) == [.accepted])
        }
    }

    @Test func `B08: bad tokens of 30 people in 100 halt the route, and no token is suspected`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            let targets = (0..<100).map {
                Push.Target.sample(token: String($0 + 0x1000_0000, radix: 16), owner: $0)
            }
            for target in targets.prefix(30) {
                try await apns.script(["status": 400, "reason": "BadDeviceToken"], token: target.token.secret)
            }
            let result = try await sender.send(.sample(targets: targets))
            #expect(result.outcomes.allSatisfy { $0.answer.disposition == .accepted })
            #expect(result.outcomes.count == 70)
            #expect(result.remainder.map { Set($0) } == Set(targets.prefix(30)))
            guard case .misconfigured = sender.trouble() else {
                Issue.record("the lane goes on")
                return
            }
            // A probe with a bad token does not open the route; an accepted one does.
            sender.time.advance(by: .seconds(30))
            _ = try await sender.send(.sample(targets: [targets[0]]))
            #expect(sender.trouble() != nil)
            sender.time.advance(by: .seconds(60))
            let probe = try await sender.send(.sample(targets: [.sample(token: "ff")]))
            #expect(probe.answers.map(\.disposition) == [.accepted])
            #expect(sender.trouble() == nil)
        }
    }

    @Test func `B09: an expired provider token is replaced once, on a new connection`() async throws {
        try await send(
            ["status": 403, "reason": "ExpiredProviderToken", "count": 1], age: .seconds(40 * 60)
        ) { result, requests, sender in
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(requests.count == 2)
            #expect(requests[0]["connection"] != requests[1]["connection"])
            #expect(requests[0]["headers"]?["authorization"] != requests[1]["headers"]?["authorization"])
            #expect(requests[0]["headers"]?["apns-id"] == requests[1]["headers"]?["apns-id"])
            #expect(sender.trouble() == nil)
        }
    }

    @Test func `B10: an expired response for a new token means a wrong clock`() async throws {
        try await send(
            ["status": 403, "reason": "ExpiredProviderToken"], age: .seconds(300)
        ) { result, requests, sender in
            #expect(requests.count == 1)
            #expect(result.outcomes.isEmpty)
            #expect(result.held == .seconds(30))
            #expect(sender.trouble()?.reason.contains("clock") == true)
        }
    }

    @Test(arguments: [
        "InvalidProviderToken", "BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken", "TopicDisallowed",
        "BadTopic", "Forbidden", "BadCertificateEnvironment",
    ])
    func `B11 B13 B19: a configuration fault halts the route, keeps the push, and sends one request`(reason: String)
        async throws
    {
        try await send(["status": reason.hasSuffix("Topic") ? 400 : 403, "reason": .string(reason)]) {
            result, requests, sender in
            #expect(requests.count == 1)
            #expect(result.outcomes.isEmpty)
            #expect(result.held == .seconds(30))
            #expect(sender.trouble() == .misconfigured(reason: reason))
        }
    }

    @Test func `B12: an unrelated key gets a new connection`() async throws {
        try await send(["status": 403, "reason": "UnrelatedKeyIdInToken", "count": 1]) { result, requests, _ in
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(requests.count == 2)
            #expect(requests[0]["connection"] != requests[1]["connection"])
        }
    }

    @Test func `B14: TooManyProviderTokenUpdates does not mint another token`() async throws {
        try await send(
            ["status": 429, "reason": "TooManyProviderTokenUpdates", "count": 1], age: .seconds(30 * 60)
        ) { result, requests, sender in
            #expect(result.outcomes.isEmpty)
            #expect(result.retry == .seconds(30))
            let again = try await sender.send(.sample(targets: [target]), attempt: 2)
            #expect(again.answers.map(\.disposition) == [.accepted])
            #expect(requests.count == 1)
        }
    }

    @Test func `B15: a throttled device waits, others do not`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            let other = Push.Target.sample(token: RequestVector.t2)
            try await apns.script(["status": 429, "reason": "TooManyRequests"], token: target.token.secret)
            let result = try await sender.send(.sample(targets: [target, other]))
            #expect(result.outcomes.map(\.device) == [other.device])
            #expect(result.remainder == [target])
            #expect(result.retry == .seconds(120))
            #expect(sender.trouble() == nil)
        }
    }

    @Test func `B16: PayloadTooLarge is final`() async throws {
        try await send(["status": 413, "reason": "PayloadTooLarge"]) { result, _, _ in
            #expect(result.answers == [.rejected(reason: "PayloadTooLarge", suspectToken: false)])
        }
    }

    @Test func `B17: a server error waits at least 15 minutes`() async throws {
        try await send(["status": 500, "reason": "InternalServerError"], lifetime: .seconds(3600)) {
            result, requests, _ in
            #expect(result.outcomes.isEmpty)
            #expect(result.retry == .seconds(900))
            #expect(requests.count == 1)
        }
    }

    @Test func `B18: a push that would be retried too late is expired`() async throws {
        try await send(["status": 503, "reason": "Shutdown"], lifetime: .seconds(60)) { result, requests, _ in
            #expect(result.answers == [.expired])
            #expect(requests.count == 1)
        }
    }

    @Test func `B21: an unknown reason rejects the push, not the token`() async throws {
        try await send(["status": 400, "reason": "FutureReason"]) { result, _, _ in
            #expect(result.answers == [.rejected(reason: "FutureReason", suspectToken: false)])
        }
    }

    @Test func `B22: an HTML response is retried`() async throws {
        try await send(["status": 502, "body": "<html>", "content_type": "text/html"]) { result, _, _ in
            #expect(result.outcomes.isEmpty)
            #expect(result.retry == .seconds(30))
        }
    }

    @Test func `B25: a refused stream is resent without counting an attempt`() async throws {
        try await send(["reset": 7, "count": 1]) { result, requests, _ in
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(requests.count == 2)
        }
    }

    @Test(arguments: [DeliveryPolicy.atLeastOnce, .atMostOnce])
    func `B26: after a lost connection, the delivery policy decides`(delivery: DeliveryPolicy) async throws {
        try await send(["drop": true, "count": 1], delivery: delivery) { result, requests, _ in
            switch delivery {
            case .atLeastOnce:
                #expect(result.answers.map(\.disposition) == [.accepted])
                #expect(requests.count == 2)
                #expect(requests[0]["headers"]?["apns-id"] == requests[1]["headers"]?["apns-id"])
            case .atMostOnce:
                #expect(result.disposition == .done)
                #expect(result.answers == [.unknown(reason: "connection-lost")])
                #expect(requests.count == 1)
            }
        }
    }

    @Test func `B29: a reason that arrives after its status is used`() async throws {
        try await send(
            ["status": 400, "reason": "BadCollapseId", "body_delay_ms": 300]
        ) { result, _, _ in
            #expect(result.answers == [.rejected(reason: "BadCollapseId", suspectToken: false)])
        }
    }
}
