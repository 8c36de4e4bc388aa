import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import PushSending
import TestSupport
import Testing

/// A token that the push's environment does not know is tried in the app's other one, once (C.4).
@Suite(.timeLimit(.minutes(2))) struct OtherEnvironmentTests {
    private let time = ManualTime()
    private let production = ScriptedGateway { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true))
    }
    private let development = ScriptedGateway()

    private func handler(
        _ environments: Set<ProviderEnvironment> = [.production, .development]
    ) -> (PushStageHandler, PushLanes) {
        let app = AppID(rawValue: "demo")!
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let gateways = [ProviderEnvironment.production: production, .development: development]
            .filter { environments.contains($0.key) }
        let lanes = PushLanes(
            Dictionary(
                uniqueKeysWithValues: gateways.map { (LaneKey(app: app, environment: $0.key), $0.value) }),
            provider: .apns, clock: time.clock, logger: logger)
        return (PushStageHandler(provider: .apns, lanes: lanes, clock: time.clock, logger: logger), lanes)
    }

    private func batches(_ push: Push, by handler: PushStageHandler) async throws -> [String: Outcomes] {
        let inbound = Inbound(
            queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        let verdict = try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
        #expect(verdict.disposition == .done)
        return Dictionary(
            uniqueKeysWithValues: try verdict.outbound.map {
                ($0.routingKey, try Outcomes.decode(wireBody: $0.body))
            })
    }

    private func targets(_ count: Int) -> [Push.Target] {
        (0..<count).map { .sample(token: String($0 + 0x1000_0000, radix: 16), owner: $0) }
    }

    @Test func `an acceptance there is an acceptance, and tells where`() async throws {
        let push = Push.sample()
        let batches = try await batches(push, by: handler().0)
        #expect(batches.keys.sorted() == ["apns.accepted.elsewhere"])
        let batch = try #require(batches["apns.accepted.elsewhere"])
        #expect(batch.environment == .production)
        #expect(batch.outcomes.map(\.elsewhere) == [.development])
        #expect(batch.outcomes.map(\.device) == [push.targets[0].device])
        #expect(development.sent == production.sent)
    }

    @Test func `a token that neither knows stays a suspicion about the push's own`() async throws {
        development.answer { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) }
        let batches = try await batches(.sample(), by: handler().0)
        #expect(
            batches["apns.rejected"]?.outcomes.map(\.answer)
                == [.rejected(reason: "BadDeviceToken", suspectToken: true)])
        #expect(batches["apns.rejected"]?.outcomes.first?.elsewhere == nil)
        #expect((production.sent.count, development.sent.count) == (1, 1))
    }

    @Test(arguments: [
        GatewayAnswer.settled(.rejected(reason: "DeviceTokenNotForTopic", suspectToken: true)),
        .settled(.rejected(reason: "PayloadTooLarge", suspectToken: false)), .settled(.accepted(id: nil)),
        .settled(.unregistered(since: nil, reason: "Unregistered")),
        .refusedHere(LocalRejection("malformed-token", suspectToken: true)),
    ])
    func `no other answer is asked about there`(answer: GatewayAnswer) async throws {
        production.answer { _, _ in answer }
        _ = try await batches(.sample(), by: handler().0)
        #expect(development.sent.isEmpty)
    }

    @Test(arguments: [
        GatewayAnswer.backOff(floor: .seconds(900), reason: "InternalServerError"),
        .throttled(floor: .seconds(10), reason: "TooManyRequests"), .unreachable(reason: "connect-failed"),
    ])
    func `where the other one says nothing about the token, the token is not doubted`(answer: GatewayAnswer)
        async throws
    {
        development.answer { _, _ in answer }
        let batches = try await batches(.sample(), by: handler().0)
        #expect(
            batches["apns.rejected"]?.outcomes.map(\.answer)
                == [.rejected(reason: "BadDeviceToken", suspectToken: false)])
    }

    @Test func `an app without another environment keeps the suspicion`() async throws {
        #expect(try await batches(.sample(), by: handler([.production]).0).keys.sorted() == ["apns.rejected"])
    }

    @Test func `a lane in trouble is not tried, and whatever goes wrong there leaves the refusal`() async throws {
        let (handler, lanes) = handler()
        development.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        let push = Push.sample(targets: targets(3))
        #expect(try await batches(push, by: handler)["apns.rejected"]?.outcomes.count == 3)
        #expect(lanes.trouble(of: LaneKey(app: push.app, environment: .development)) != nil)
        let tried = development.sent.count
        #expect(try await batches(.sample(), by: handler).keys.sorted() == ["apns.rejected"])
        #expect(development.sent.count == tried)
        #expect(lanes.trouble(of: LaneKey(app: push.app, environment: .production)) == nil)
    }

    @Test func `so many tries a minute, and no more`() async throws {
        let handler = handler().0
        production.answer { target, _ in
            target.token.secret.hasPrefix("2")
                ? .settled(.accepted(id: nil)) : .settled(.rejected(reason: "BadDeviceToken", suspectToken: true))
        }
        for _ in 0..<3 {
            let good = (0..<500).map { Push.Target.sample(token: String($0 + 0x2000_0000, radix: 16)) }
            _ = try await batches(.sample(targets: good), by: handler)
        }
        let first = try await batches(.sample(targets: targets(50)), by: handler)
        #expect(first["apns.accepted.elsewhere"]?.outcomes.count == 20)
        #expect(first["apns.rejected"]?.outcomes.count == 30)
        #expect(development.sent.count == 20)
        time.advance(by: .seconds(60))
        _ = try await batches(.sample(targets: targets(5)), by: handler)
        #expect(development.sent.count == 25)
    }

    @Test func `B14: twenty tokens of a wrong build are corrected, and halt nothing`() async throws {
        let (handler, lanes) = handler()
        // Every answer of that minute is about one of them.
        let batches = try await batches(.sample(targets: targets(20)), by: handler)
        #expect(batches.keys.sorted() == ["apns.accepted.elsewhere"])
        #expect(batches["apns.accepted.elsewhere"]?.outcomes.count == 20)
        #expect(lanes.trouble(of: LaneKey(app: AppID(rawValue: "demo")!, environment: .production)) == nil)
    }

    @Test func `B14: what is misplaced beyond the tries of a minute halts nothing, and is not doubted`() async throws {
        let (handler, lanes) = handler()
        let batches = try await batches(.sample(targets: targets(80)), by: handler)
        #expect(batches["apns.accepted.elsewhere"]?.outcomes.count == 20)
        #expect(
            batches["apns.rejected"]?.outcomes.map(\.answer)
                == Array(repeating: .rejected(reason: "BadDeviceToken", suspectToken: false), count: 60))
        #expect(lanes.trouble(of: LaneKey(app: AppID(rawValue: "demo")!, environment: .production)) == nil)
    }

    @Test func `a storm halts the lane: the other environment does not know the tokens either`() async throws {
        let (handler, lanes) = handler()
        development.answer { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) }
        let push = Push.sample(targets: targets(50))
        let inbound = Inbound(
            queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        let verdict = try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
        guard case .retry = verdict.disposition else {
            Issue.record("not retried: \(verdict.disposition)")
            return
        }
        #expect(try verdict.outbound.flatMap { try Outcomes.decode(wireBody: $0.body).outcomes }.isEmpty)
        #expect(development.sent.count == 20)
        guard case .misconfigured = lanes.trouble(of: LaneKey(app: push.app, environment: .production)) else {
            Issue.record("the lane goes on")
            return
        }
    }

    @Test func `a redelivery is answered from memory, with the environment`() async throws {
        let (handler, _) = handler(), push = Push.sample()
        let first = try await batches(push, by: handler)
        #expect(try await batches(push, by: handler) == first)
        #expect(development.sent.count == 1)
    }
}
