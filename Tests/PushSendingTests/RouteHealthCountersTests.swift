import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import PushSending
import Testing
import TestSupport

/// Evidence against tokens carries the health of its route.
@Suite(.timeLimit(.minutes(2))) struct RouteHealthCountersTests {
    private let time = ManualTime()
    private let gateway = ScriptedGateway { target, _ in
        target.token.secret.hasSuffix("7")
            ? .settled(.unregistered(since: nil, reason: "Unregistered")) : .settled(.accepted(id: nil))
    }

    private func handler() -> PushStageHandler {
        let route = ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let routes = ProviderRoutes([route: gateway], provider: .apns, clock: time.clock, logger: logger)
        return PushStageHandler(provider: .apns, routes: routes, clock: time.clock, logger: logger)
    }

    private func routeHealth(_ count: Int, by handler: PushStageHandler) async throws -> [String:
        RouteHealth?]
    {
        let push = Push.sample(targets: (0..<count).map { .sample(token: String($0 + 0x1000_0000, radix: 16)) })
        let inbound = Inbound(
            queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        let verdict = try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
        return Dictionary(
            uniqueKeysWithValues: try verdict.outbound.map {
                ($0.routingKey, try Outcomes.decode(wireBody: $0.body).routeHealth)
            })
    }

    @Test func `evidence carries the answers of its minute and the time of the last acceptance`() async throws {
        let handler = handler()
        let first = try await routeHealth(16, by: handler)
        #expect(first["apns.accepted"] == .some(nil))
        let health = try #require(first["apns.unregistered"] ?? nil)
        #expect(health.answered == 16)
        #expect(health.minute == .sample)
        #expect(health.acceptedAt == .sample)

        time.advance(by: .seconds(59))
        let second = try #require(try await routeHealth(16, by: handler)["apns.unregistered"] ?? nil)
        #expect((second.answered, second.sender, second.minute) == (32, health.sender, health.minute))

        time.advance(by: .seconds(1))
        gateway.answer { _, _ in .settled(.unregistered(since: nil, reason: "Unregistered")) }
        let third = try #require(try await routeHealth(2, by: handler)["apns.unregistered"] ?? nil)
        #expect((third.answered, third.minute) == (2, .sample + .seconds(60)))
        #expect(third.acceptedAt == .sample + .seconds(59))
    }

    @Test func `local rejections do not count as answers`() async throws {
        gateway.answer { target, _ in
            switch target.token.secret.last {
            case "7": .settled(.unregistered(since: nil, reason: "Unregistered"))
            case "8": .settled(.rejected(reason: "BadCollapseId", suspectToken: false))
            case "9": .settled(.accepted(id: nil))
            default: .rejectedLocally(LocalRejection("payload-too-large"))
            }
        }
        let routeHealth = try await routeHealth(16, by: handler())
        #expect((routeHealth["apns.unregistered"] ?? nil)?.answered == 3)
        #expect((routeHealth["apns.rejected"] ?? nil)?.answered == 3)
    }

    @Test func `B08: given a spike without outcomes, then a message without outcomes reports it`() async throws {
        let handler = handler()
        // 19 of 100: too few for a spike, so they are reported.
        gateway.answer { target, _ in
            target.token.secret < "10000013"
                ? .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) : .settled(.accepted(id: nil))
        }
        let first = try #require(try await routeHealth(100, by: handler)["apns.rejected"] ?? nil)
        #expect(first.badTokenSpike == nil)
        time.advance(by: .seconds(20))
        gateway.answer { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) }
        let push = Push.sample(targets: (0..<21).map { .sample(token: String($0 + 0x2000_0000, radix: 16), owner: $0) })
        let inbound = Inbound(
            queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        let verdict = try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
        guard case .retry = verdict.disposition else {
            Issue.record("not retried: \(verdict.disposition)")
            return
        }
        #expect(verdict.outbound.map(\.routingKey) == ["apns.misconfigured"])
        let word = try Outcomes.decode(wireBody: try #require(verdict.outbound.first).body)
        #expect(word.outcomes.isEmpty)
        #expect((word.app, word.environment) == (push.app, .production))
        let health = try #require(word.routeHealth)
        #expect((health.sender, health.answered) == (first.sender, 100))
        // The spike includes the 19: its times are by the clock of the outcomes.
        #expect(health.badTokenSpike == .init(since: .sample + .seconds(-40), until: .sample + .seconds(20)))
        // A push that is held during the spike does not report it again.
        let held = try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
        #expect(held.outbound.isEmpty)
    }

    @Test func `outcomes without an answer do not count`() async throws {
        gateway.answer { target, _ in
            target.token.secret.hasSuffix("7")
                ? .settled(.unregistered(since: nil, reason: "Unregistered")) : .settled(.misconfigured(reason: "x"))
        }
        let health = try #require(try await routeHealth(16, by: handler())["apns.unregistered"] ?? nil)
        #expect(health.answered == 1)
        #expect(health.acceptedAt == nil)
    }
}
