import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import PushSending
import Testing
import TestSupport

/// A token that is unknown in the push's environment is tried once in the app's other environment.
@Suite(.timeLimit(.minutes(2))) struct EnvironmentFallbackTests {
    private let time = ManualTime()
    private let production = ScriptedGateway { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true))
    }
    private let development = ScriptedGateway()

    private func handler(
        _ environments: Set<ProviderEnvironment> = [.production, .development]
    ) -> (PushStageHandler, ProviderRoutes) {
        let app = AppID(rawValue: "demo")!
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let gateways = [ProviderEnvironment.production: production, .development: development]
            .filter { environments.contains($0.key) }
        let routes = ProviderRoutes(
            Dictionary(
                uniqueKeysWithValues: gateways.map { (ProviderRoute(app: app, environment: $0.key), $0.value) }),
            provider: .apns, clock: time.clock, logger: logger)
        return (PushStageHandler(provider: .apns, routes: routes, clock: time.clock, logger: logger), routes)
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

    @Test func `given an acceptance in the other environment, then the outcome is accepted and names it`()
        async throws
    {
        let push = Push.sample()
        let batches = try await batches(push, by: handler().0)
        #expect(batches.keys.sorted() == ["apns.accepted.elsewhere"])
        let batch = try #require(batches["apns.accepted.elsewhere"])
        #expect(batch.environment == .production)
        #expect(batch.outcomes.map(\.elsewhere) == [.development])
        #expect(batch.outcomes.map(\.device) == [push.targets[0].device])
        #expect(development.sent == production.sent)
    }

    @Test func `given a token unknown in both environments, then it stays suspect in the push's environment`()
        async throws
    {
        development.answer { _, _ in .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) }
        let batches = try await batches(.sample(), by: handler().0)
        #expect(
            batches["apns.rejected"]?.outcomes.map(\.answer)
                == [.rejected(reason: "BadDeviceToken", suspectToken: true)])
        #expect(batches["apns.rejected"]?.outcomes.first?.elsewhere == nil)
        #expect((production.sent.count, development.sent.count) == (1, 1))
    }

    @Test(arguments: [
        SendResult.settled(.rejected(reason: "DeviceTokenNotForTopic", suspectToken: true)),
        .settled(.rejected(reason: "PayloadTooLarge", suspectToken: false)), .settled(.accepted(id: nil)),
        .settled(.unregistered(since: nil, reason: "Unregistered")),
        .rejectedLocally(LocalRejection("malformed-token", suspectToken: true)),
    ])
    func `other answers are not retried in the other environment`(answer: SendResult) async throws {
        production.answer { _, _ in answer }
        _ = try await batches(.sample(), by: handler().0)
        #expect(development.sent.isEmpty)
    }

    @Test(arguments: [
        SendResult.backOff(floor: .seconds(900), reason: "InternalServerError"),
        .throttled(floor: .seconds(10), reason: "TooManyRequests"), .unreachable(reason: "connect-failed"),
    ])
    func `given no answer about the token in the other environment, then the token is not suspect`(answer: SendResult)
        async throws
    {
        development.answer { _, _ in answer }
        let batches = try await batches(.sample(), by: handler().0)
        #expect(
            batches["apns.rejected"]?.outcomes.map(\.answer)
                == [.rejected(reason: "BadDeviceToken", suspectToken: false)])
    }

    @Test func `given an app with one environment, then the token stays suspect`() async throws {
        #expect(try await batches(.sample(), by: handler([.production]).0).keys.sorted() == ["apns.rejected"])
    }

    @Test func `given an error of the other route, then the rejection stands and the paused route is not tried again`()
        async throws
    {
        let (handler, routes) = handler()
        development.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        let push = Push.sample(targets: targets(3))
        #expect(try await batches(push, by: handler)["apns.rejected"]?.outcomes.count == 3)
        #expect(routes.openCause(of: ProviderRoute(app: push.app, environment: .development)) != nil)
        let tried = development.sent.count
        #expect(try await batches(.sample(), by: handler).keys.sorted() == ["apns.rejected"])
        #expect(development.sent.count == tried)
        #expect(routes.openCause(of: ProviderRoute(app: push.app, environment: .production)) == nil)
    }

    @Test func `the tries are limited per minute`() async throws {
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

    @Test func `B14: given 20 tokens of the other environment, then all are corrected and no route is halted`()
        async throws
    {
        let (handler, routes) = handler()
        // All answers of that minute are about these tokens.
        let batches = try await batches(.sample(targets: targets(20)), by: handler)
        #expect(batches.keys.sorted() == ["apns.accepted.elsewhere"])
        #expect(batches["apns.accepted.elsewhere"]?.outcomes.count == 20)
        #expect(routes.openCause(of: ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)) == nil)
    }

    @Test func `B14: given more misplaced tokens than tries, then they are not suspect and no route is halted`()
        async throws
    {
        let (handler, routes) = handler()
        let batches = try await batches(.sample(targets: targets(80)), by: handler)
        #expect(batches["apns.accepted.elsewhere"]?.outcomes.count == 20)
        #expect(
            batches["apns.rejected"]?.outcomes.map(\.answer)
                == Array(repeating: .rejected(reason: "BadDeviceToken", suspectToken: false), count: 60))
        #expect(routes.openCause(of: ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)) == nil)
    }

    @Test func `given tokens unknown in both environments, then the spike halts the route`() async throws {
        let (handler, routes) = handler()
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
        guard case .misconfigured = routes.openCause(of: ProviderRoute(app: push.app, environment: .production)) else {
            Issue.record("the route is not halted")
            return
        }
    }

    @Test func `given a redelivery, then the cached outcome names the environment`() async throws {
        let (handler, _) = handler(), push = Push.sample()
        let first = try await batches(push, by: handler)
        #expect(try await batches(push, by: handler) == first)
        #expect(development.sent.count == 1)
    }
}
