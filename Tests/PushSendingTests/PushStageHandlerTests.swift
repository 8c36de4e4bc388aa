import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import PushSending
import Testing
import TestSupport

@Suite(.timeLimit(.minutes(2))) struct PushStageHandlerTests {
    private let time = ManualTime()
    private let gateway = ScriptedGateway()

    private func handler(configured: Bool = true) -> PushStageHandler {
        let route = ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)
        let routes = ProviderRoutes(
            configured ? [route: gateway] : [:], provider: .apns, clock: time.clock, logger: .silent)
        return PushStageHandler(provider: .apns, routes: routes, clock: time.clock, logger: .silent)
    }

    private func inbound(
        _ push: Push, attempt: Int = 1, app: String = "demo", redelivered: Bool = false
    ) throws -> Inbound {
        Inbound(
            queue: .senderPushes(.apns, .interactive, AppID(rawValue: app)!), exchange: "pushes",
            routingKey: "apns.interactive.\(app)", body: try push.wireBody(), attempt: attempt,
            redelivered: redelivered, firstSeen: .sample)
    }

    private func handle(
        _ push: Push, attempt: Int = 1, redelivered: Bool = false, by handler: PushStageHandler
    ) async throws -> Verdict {
        let inbound = try inbound(push, attempt: attempt, redelivered: redelivered)
        return try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
    }

    private func outcomes(_ verdict: Verdict) throws -> [String: [Outcome]] {
        var byKey: [String: [Outcome]] = [:]
        for outbound in verdict.outbound {
            #expect(outbound.exchange == .outcomes)
            byKey[outbound.routingKey] = try Outcomes.decode(wireBody: outbound.body).outcomes
        }
        return byKey
    }

    private func targets(_ count: Int) -> [Push.Target] {
        (0..<count).map { .sample(token: String($0 + 0x1000_0000, radix: 16)) }
    }

    @Test func `each target gets one outcome, in one message per disposition`() async throws {
        let push = Push.sample(targets: targets(500))
        gateway.answer { target, _ in
            target.token.secret.hasSuffix("7")
                ? .settled(.unregistered(since: nil, reason: "Unregistered")) : .settled(.accepted(id: nil))
        }
        let verdict = try await handle(push, by: handler())
        #expect(verdict.disposition == .done)
        let outcomes = try outcomes(verdict)
        #expect(outcomes.keys.sorted() == ["apns.accepted", "apns.unregistered"])
        #expect(outcomes["apns.unregistered"]?.count == 31)
        #expect(Set(outcomes.values.flatMap { $0 }.map(\.device)) == Set(push.targets.map(\.device)))
        #expect(outcomes.values.flatMap { $0 }.count == 500)
        #expect(outcomes["apns.unregistered"]?.first?.registeredAt == push.targets[0].registeredAt)
    }

    @Test func `the same answers lead to the same messages`() async throws {
        let push = Push.sample(targets: targets(3))
        let first = try await handle(push, by: handler()), second = try await handle(push, by: handler())
        #expect(first.outbound.map(\.body) == second.outbound.map(\.body))
        #expect(Set(first.outbound.map(\.messageID)).count == 1)
    }

    @Test func `given an expired push, then its outcome is expired and nothing is sent`() async throws {
        let verdict = try await handle(.sample(expiresAt: .sample), by: handler())
        #expect(try outcomes(verdict)["apns.expired"]?.count == 1)
        #expect(gateway.sent.isEmpty)
    }

    @Test func `given an accepted push, when its redelivery is late, then it stays accepted`() async throws {
        let handler = handler()
        let push = Push.sample(expiresAt: time.clock.now() + .seconds(10))
        #expect(try outcomes(try await handle(push, by: handler)).keys.sorted() == ["apns.accepted"])
        time.advance(by: .seconds(60))
        #expect(try outcomes(try await handle(push, by: handler)).keys.sorted() == ["apns.accepted"])
        #expect(gateway.sent.count == 1)
    }

    @Test func `given an app without credentials, then its pushes are skipped`() async throws {
        let verdict = try await handle(.sample(targets: targets(2)), by: handler(configured: false))
        #expect(verdict.disposition == .done)
        #expect(
            try outcomes(verdict)["apns.skipped"]?.map(\.answer)
                == [.skipped(reason: "unconfigured"), .skipped(reason: "unconfigured")])
        #expect(gateway.sent.isEmpty)
    }

    @Test func `a skipped push is logged without its token and its text`() async throws {
        let log = CapturingLogger()
        let routes = ProviderRoutes([:], provider: .apns, clock: time.clock, logger: log.logger)
        let handler = PushStageHandler(provider: .apns, routes: routes, clock: time.clock, logger: log.logger)
        let push = Push.sample(Content(title: "Title", body: "Body", data: ["k": "Value"]), targets: targets(2))
        _ = try await handle(push, by: handler)
        let metadata = try #require(log.lines.first { $0.level == .info }).metadata
        #expect(metadata["app"] == "demo" && metadata["has_title"] == "true" && metadata["targets"] == "2")
        #expect(log.lines.count { $0.level == .debug && $0.metadata["notification"] != nil } == 2)
        #expect(log.lines.allSatisfy { $0.metadata["correlation"] == "\(push.trace.correlation)" })
        for secret in ["Title", "Body", "Value", push.targets[0].token.secret] {
            #expect(!"\(log.lines)".contains(secret))
        }
    }

    @Test func `remaining targets are retried as the same push with fewer targets`() async throws {
        let push = Push.sample(targets: targets(3))
        gateway.answer { target, _ in
            target == push.targets[1]
                ? .throttled(floor: .seconds(10), reason: "TooManyRequests") : .settled(.accepted(id: nil))
        }
        let verdict = try await handle(push, by: handler())
        guard case .retry(let after, let reason) = verdict.disposition else {
            Issue.record("not retried: \(verdict.disposition)")
            return
        }
        #expect(after == .seconds(30))
        #expect(reason.detail.contains("TooManyRequests"))
        let rest = try Push.decode(wireBody: try #require(verdict.remainder))
        #expect(rest.targets == [push.targets[1]])
        #expect(rest.trace == push.trace)
        #expect(rest.content == push.content)
        #expect(try outcomes(verdict)["apns.accepted"]?.count == 2)
    }

    @Test func `given no finished target, then the message is retried unchanged`() async throws {
        gateway.answer { _, _ in .backOff(floor: .seconds(900), reason: "InternalServerError") }
        let verdict = try await handle(.sample(targets: targets(2)), by: handler())
        guard case .retry(let after, _) = verdict.disposition else {
            Issue.record("not retried: \(verdict.disposition)")
            return
        }
        #expect(after == .seconds(900))
        #expect(verdict.remainder == nil)
        #expect(verdict.outbound.isEmpty)
    }

    @Test func `the longest delay of the remaining targets holds for all of them`() async throws {
        let push = Push.sample(targets: targets(2))
        gateway.answer { target, _ in
            target == push.targets[0]
                ? .throttled(floor: .seconds(10), reason: "TooManyRequests")
                : .backOff(floor: .seconds(900), reason: "ServiceUnavailable")
        }
        guard case .retry(let after, _) = try await handle(push, by: handler()).disposition else {
            Issue.record("not retried")
            return
        }
        #expect(after == .seconds(900))
    }

    @Test func `given a retry after the expiration, then the target gets an outcome`() async throws {
        gateway.answer { _, _ in .backOff(floor: .seconds(900), reason: "Shutdown") }
        let late = try await handle(.sample(expiresAt: .sample + .seconds(60)), by: handler())
        #expect(late.disposition == .done)
        #expect(try outcomes(late)["apns.expired"]?.count == 1)

        gateway.answer { _, _ in .throttled(floor: .seconds(60), reason: "TooManyRequests") }
        let throttled = try await handle(.sample(expiresAt: .sample + .seconds(60)), by: handler())
        #expect(try outcomes(throttled)["apns.throttled"]?.count == 1)
    }

    @Test func `given a push retried for an hour, then it is dead-lettered`() async throws {
        gateway.answer { _, _ in .backOff(floor: .seconds(900), reason: "InternalServerError") }
        time.advance(by: .seconds(3000))
        guard case .deadLetter(let reason) = try await handle(.sample(), attempt: 4, by: handler()).disposition else {
            Issue.record("not dead-lettered")
            return
        }
        #expect(reason.code == "provider-unavailable")
    }

    @Test func `given a redelivery, then only targets without an outcome are sent to`() async throws {
        let push = Push.sample(targets: targets(3)), handler = handler()
        gateway.answer { target, _ in
            target == push.targets[2]
                ? .backOff(floor: .seconds(10), reason: "timed-out") : .settled(.accepted(id: "x"))
        }
        _ = try await handle(push, by: handler)
        #expect(gateway.sent.count == 3)
        let again = try await handle(push, by: handler)
        #expect(gateway.sent.count == 4)
        #expect(try outcomes(again)["apns.accepted"]?.count == 2)
        time.advance(by: .seconds(75 * 60 + 1))
        _ = try await handle(push, by: handler)
        #expect(gateway.sent.count == 7)
    }

    @Test(arguments: [DeliveryPolicy.atLeastOnce, .atMostOnce])
    func `given a redelivery from another sender, then it is resent unless at-most-once`(
        delivery: DeliveryPolicy
    ) async throws {
        let push = Push.sample(delivery: delivery, targets: targets(2))
        let verdict = try await handle(push, redelivered: true, by: handler())
        #expect(verdict.disposition == .done)
        switch delivery {
        case .atLeastOnce: #expect(gateway.sent.count == 2)
        case .atMostOnce:
            #expect(gateway.sent.isEmpty)
            #expect(
                try outcomes(verdict)["apns.unknown"]?.map(\.answer)
                    == Array(repeating: .unknown(reason: "redelivered"), count: 2))
        }
    }

    @Test func `given at-most-once delivery, then a redelivery gets the cached outcomes`() async throws {
        let push = Push.sample(delivery: .atMostOnce), handler = handler()
        _ = try await handle(push, by: handler)
        let again = try await handle(push, redelivered: true, by: handler)
        #expect(gateway.sent.count == 1)
        #expect(try outcomes(again)["apns.accepted"]?.count == 1)
    }

    @Test func `given only lost responses, then the breaker opens`() async throws {
        gateway.answer { _, _ in .settled(.unknown(reason: "connection-lost")) }
        let handler = handler()
        for _ in 0..<5 { _ = try await handle(.sample(), by: handler) }
        guard case .postpone = try await handle(.sample(), by: handler).disposition else {
            Issue.record("the route did not pause")
            return
        }
        #expect(gateway.sent.count == 5)
    }

    @Test func `given a halted route, then its pushes are postponed without rejections and few are sent`()
        async throws
    {
        gateway.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        let handler = handler(), push = Push.sample(targets: targets(500))
        let first = try await handle(push, by: handler)
        guard case .postpone(let after, _) = first.disposition else {
            Issue.record("not retried: \(first.disposition)")
            return
        }
        #expect(after == .seconds(30))
        #expect(first.outbound.isEmpty)
        let sent = gateway.sent.count
        #expect(sent <= 250)
        _ = try await handle(.sample(targets: targets(500)), by: handler)
        #expect(gateway.sent.count == sent)
    }

    @Test func `given a paused route, then its pushes count no attempt and wait until they expire`() async throws {
        let handler = handler()
        gateway.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        let push = Push.sample(expiresAt: .sample + .seconds(29))
        let verdict = try await handle(push, by: handler)
        guard case .postpone(let after, _) = verdict.disposition else {
            Issue.record("not postponed: \(verdict.disposition)")
            return
        }
        #expect(after == .seconds(5))
        #expect(verdict.outbound.isEmpty)
        time.advance(by: .seconds(29))
        #expect(try outcomes(await handle(push, by: handler))["apns.expired"]?.count == 1)
    }

    @Test func `given a first attempt after a long pause, then the push is retried`() async throws {
        gateway.answer { _, _ in .backOff(floor: .seconds(10), reason: "timed-out") }
        time.advance(by: .seconds(6 * 3600))
        guard case .retry = try await handle(.sample(), by: handler()).disposition else {
            Issue.record("given up")
            return
        }
    }

    @Test func `local rejections do not close an open breaker`() async throws {
        let handler = handler()
        gateway.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        _ = try await handle(.sample(), by: handler)
        time.advance(by: .seconds(30))
        let push = Push.sample(targets: targets(3))
        gateway.answer { target, _ in
            target == push.targets[0]
                ? .rejectedLocally(LocalRejection("malformed-token", suspectToken: true))
                : .halted(reason: "InvalidProviderToken")
        }
        let sent = gateway.sent.count
        let verdict = try await handle(push, by: handler)
        #expect(gateway.sent.count == sent + 2)
        #expect(try outcomes(verdict)["apns.rejected"]?.count == 1)
        guard case .postpone = verdict.disposition else {
            Issue.record("not postponed: \(verdict.disposition)")
            return
        }
    }

    @Test func `given local congestion, then the breaker stays closed`() async throws {
        let handler = handler()
        gateway.answer { _, _ in .deferred(reason: "queue-full") }
        for _ in 0..<20 {
            guard case .postpone(.seconds(5), _) = try await handle(.sample(), by: handler).disposition else {
                Issue.record("not postponed")
                return
            }
        }
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        #expect(try await handle(.sample(), by: handler).disposition == .done)
    }

    @Test func `given a cancellation, then finished targets get outcomes and the others remain`() async throws {
        let slow = Push.sample(targets: targets(2)), quick = Push.sample()
        gateway.answer { target, _ in
            if target == slow.targets[1] {
                // Ends by cancellation only.
                try? await Task.sleep(for: .seconds(3600))
                return .deferred(reason: "cancelled")
            }
            return .settled(.accepted(id: nil))
        }
        let handler = handler()
        let batch = try [slow, quick].map { Delivery(inbound: try inbound($0), message: $0) }
        let handling = Task { try await handler.handle(batch) }
        try await eventually("the pushes are sent", within: .seconds(60)) { gateway.sent.count == 3 }
        handling.cancel()
        let verdicts = try await handling.value
        guard verdicts.count == 2, case .postpone = verdicts[0].disposition else {
            Issue.record("\(verdicts)")
            return
        }
        #expect(try Push.decode(wireBody: try #require(verdicts[0].remainder)).targets == [slow.targets[1]])
        #expect(
            try outcomes(verdicts[0])["apns.accepted"]?.map(\.device) == [
                slow.targets[0].device, quick.targets[0].device,
            ])
        #expect(verdicts[1].disposition == .done)
    }

    @Test(arguments: Lane.allCases)
    func `the policy limits attempts and batch sizes`(lane: Lane) {
        let policy = handler().policy(.senderPushes(.apns, lane, AppID(rawValue: "demo")!))
        #expect(policy.maximumAttempts <= StagePolicy().maximumAttempts)
        #expect(policy.batchSize <= (lane == .bulk ? 4 : 32))
        #expect(policy.batchSize * policy.concurrentBatches >= Int(policy.prefetch))
    }

    @Test func `the prefetch of bulk pushes limits their targets`() {
        let bulk = handler().policy(.senderPushes(.apns, .bulk, AppID(rawValue: "demo")!))
        #expect(Int(bulk.prefetch) * Push.maximumTargets <= 32_000)
    }

    @Test func `given an accepted probe after the pause, then the breaker closes`() async throws {
        let handler = handler()
        gateway.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        _ = try await handle(.sample(), by: handler)
        time.advance(by: .seconds(30))
        gateway.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        _ = try await handle(.sample(targets: targets(100)), by: handler)
        #expect(gateway.sent.count == 2)

        time.advance(by: .seconds(60))
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        let verdict = try await handle(.sample(targets: targets(100)), by: handler)
        #expect(verdict.disposition == .done)
        #expect(gateway.sent.count == 102)
    }

    @Test func `pushes wait during a probe and are sent after it`() async throws {
        let handler = handler()
        gateway.answer { _, _ in .halted(reason: "InvalidProviderToken") }
        _ = try await handle(.sample(), by: handler)
        time.advance(by: .seconds(30))
        gateway.answer { _, _ in
            for _ in 0..<100 { await Task.yield() }
            return .settled(.accepted(id: nil))
        }
        let batch = try (0..<20).map { _ in
            let push = Push.sample(targets: targets(5))
            return Delivery(inbound: try inbound(push), message: push)
        }
        let verdicts = try await handler.handle(batch)
        #expect(verdicts.map(\.disposition) == Array(repeating: .done, count: 20))
        #expect(gateway.sent.count == 101)
    }

    @Test func `verdicts are in the order of the pushes`() async throws {
        let pushes = (0..<50).map { Push.sample(targets: targets($0 + 1)) }
        let batch = try pushes.map { Delivery(inbound: try inbound($0), message: $0) }
        for (push, verdict) in zip(pushes, try await handler().handle(batch)) {
            let told = try #require(try outcomes(verdict)["apns.accepted"])
            #expect(Set(told.map(\.device)).isSuperset(of: push.targets.map(\.device)))
        }
    }

    @Test func `a push for another app or provider, or without targets, cannot be decoded`() throws {
        let handler = handler()
        #expect(throws: WireError.self) { try handler.decode(try inbound(.sample(), app: "other")) }
        #expect(throws: WireError.self) { try handler.decode(try inbound(.sample(provider: .fcm))) }
        #expect(throws: WireError.self) { try handler.decode(try inbound(.sample(lane: .bulk))) }
        #expect(throws: WireError.self) { try handler.decode(try inbound(.sample(targets: []))) }
        #expect(throws: WireError.self) { try handler.decode(try inbound(.sample(targets: targets(501)))) }
        #expect(throws: Never.self) { try handler.decode(try inbound(.sample(targets: targets(500)))) }
    }
}
