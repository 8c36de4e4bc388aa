import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

struct RecentOutcomeCacheTests {
    private let time = ManualTime()

    private func outcome(_ target: Push.Target, _ answer: Outcome.Answer = .accepted(id: nil)) -> Outcome {
        Outcome(
            notification: target.notification, device: target.device, answer: answer, at: .sample,
            registeredAt: target.registeredAt)
    }

    private func push(_ number: Int, targets: Int = 3) -> Push {
        var push = Push.sample(targets: (0..<targets).map { .sample(token: String(0x1000 * number + $0, radix: 16)) })
        push.trace = push.trace.next(id: DerivedID.caused(by: push.trace.id, "push", index: number))
        return push
    }

    private func delivery(_ push: Push) -> Delivery<Push> {
        Delivery(
            inbound: Inbound(
                queue: .senderPushes(.apns, push.lane, push.app), exchange: "pushes", routingKey: "", body: []),
            message: push)
    }

    private func store(_ outcomes: [Outcome], of push: Push, in cache: RecentOutcomeCache) {
        var pushResults = PushResults()
        for outcome in outcomes { pushResults.settle(outcome, of: 0) }
        cache.store(pushResults, of: [delivery(push)])
    }

    private func known(_ push: Push, to cache: RecentOutcomeCache) -> RecentOutcomeCache.KnownOutcomes? {
        cache.outcomes(of: [delivery(push)])[0]
    }

    @Test func `known outcomes are returned, and the other targets are missing`() {
        let cache = RecentOutcomeCache(clock: time.clock), push = push(1)
        #expect(known(push, to: cache) == nil)
        store([outcome(push.targets[1])], of: push, in: cache)
        store([outcome(push.targets[2])], of: push, in: cache)
        let known = known(push, to: cache)
        #expect(push.targets.indices.map { known?.isMissing($0) } == [true, false, false])
        #expect(known?.outcomes == [outcome(push.targets[1]), outcome(push.targets[2])])
        #expect(self.known(self.push(2), to: cache) == nil)
    }

    @Test func `recalled outcomes are not stored again`() {
        let cache = RecentOutcomeCache(capacity: 3, clock: time.clock), push = push(1)
        store([outcome(push.targets[0])], of: push, in: cache)
        var again = PushResults()
        again.recall(known(push, to: cache)?.outcomes ?? [], of: 0)
        again.settle(outcome(push.targets[1]), of: 0)
        cache.store(again, of: [delivery(push)])
        store([outcome(push.targets[2])], of: push, in: cache)
        #expect(known(push, to: cache)?.outcomes == push.targets.map { outcome($0) })
    }

    @Test(
        arguments: [
            .accepted(id: nil), .accepted(id: "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a"),
            .accepted(id: "6F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A"), .accepted(id: "0:1500415314455276%31bd1c9631bd1c96"),
            .accepted(id: ""), .accepted(id: ProviderMessageID(String(repeating: "é", count: 24))),
            .accepted(id: ProviderMessageID(String(repeating: "x", count: 47))),
            .unregistered(since: Timestamp(milliseconds: 5), reason: "Unregistered"),
            .rejected(reason: "BadDeviceToken", suspectToken: true), .throttled(reason: "TooManyRequests"),
            .misconfigured(reason: "x"), .expired, .skipped(reason: "unconfigured"), .unknown(reason: "timed-out"),
        ] as [Outcome.Answer])
    func `every answer round-trips`(answer: Outcome.Answer) {
        let cache = RecentOutcomeCache(clock: time.clock), push = push(1, targets: 2)
        var outcomes = push.targets.map { outcome($0, answer) }
        outcomes[0].elsewhere = .development
        outcomes[1].registeredAt = nil
        store(outcomes, of: push, in: cache)
        #expect(known(push, to: cache)?.outcomes == outcomes)
    }

    @Test func `outcomes expire after their lifetime`() {
        let cache = RecentOutcomeCache(lifetime: .seconds(60), clock: time.clock), push = push(1)
        store([outcome(push.targets[0])], of: push, in: cache)
        time.advance(by: .seconds(59))
        #expect(known(push, to: cache) != nil)
        time.advance(by: .seconds(2))
        #expect(known(push, to: cache) == nil)
    }

    @Test func `the oldest outcomes are overwritten`() {
        let cache = RecentOutcomeCache(capacity: 6, clock: time.clock)
        let pushes = (1...3).map { push($0) }
        for push in pushes { store(push.targets.map { outcome($0) }, of: push, in: cache) }
        #expect(pushes.map { known($0, to: cache)?.outcomes.count } == [nil, 3, 3])
    }

    @Test func `exactly the last outcomes of many pushes are known`() {
        var random = SplitMix(seed: 21)
        let cache = RecentOutcomeCache(capacity: 100, clock: time.clock)
        var model: [(push: Push, outcome: Outcome)] = []
        let pushes = (0..<60).map { push($0, targets: 4) }
        let answers: [Outcome.Answer] = [
            .accepted(id: nil), .expired, .accepted(id: "messages/1"), .accepted(id: "messages/longer"),
        ]
        for _ in 0..<2000 {
            let push = pushes.randomElement(using: &random)!
            let target = push.targets.randomElement(using: &random)!
            guard
                !model.suffix(100).contains(where: {
                    $0.push.trace.id == push.trace.id && $0.outcome.device == target.device
                })
            else { continue }
            let outcome = outcome(target, answers.randomElement(using: &random)!)
            store([outcome], of: push, in: cache)
            model.append((push, outcome))
            let asked = pushes.randomElement(using: &random)!
            let expected = model.suffix(100).filter { $0.push.trace.id == asked.trace.id }.map(\.outcome)
            let known = known(asked, to: cache)?.outcomes ?? []
            #expect(Set(known) == Set(expected))
        }
        #expect(model.count > 500)
    }

    private func handler(_ gateway: ScriptedGateway, _ cache: RecentOutcomeCache?) -> PushStageHandler {
        let route = ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)
        let routes = ProviderRoutes([route: gateway], provider: .apns, clock: time.clock, logger: .silent)
        return PushStageHandler(
            provider: .apns, routes: routes, recentOutcomes: cache, clock: time.clock, logger: .silent)
    }

    private func delivery(_ push: Push, redelivered: Bool) throws -> Delivery<Push> {
        Delivery(
            inbound: Inbound(
                queue: .senderPushes(.apns, push.lane, push.app), exchange: "pushes", routingKey: "",
                body: try push.wireBody(), redelivered: redelivered, firstSeen: .sample),
            message: push)
    }

    private func outcomes(_ verdicts: [Verdict]) throws -> [Outcome] {
        try verdicts.flatMap { try $0.outbound.flatMap { try Outcomes.decode(wireBody: $0.body).outcomes } }
    }

    @Test(arguments: [DeliveryPolicy.atMostOnce, .atLeastOnce])
    func `given a push in flight, when it is delivered again, then the second handling waits and has the same outcomes`(
        policy: DeliveryPolicy
    ) async throws {
        let (gate, cache) = (Gate(), RecentOutcomeCache(clock: time.clock))
        let gateway = ScriptedGateway { _, _ in
            await gate.pass()
            return .settled(.accepted(id: nil))
        }
        let handler = handler(gateway, cache)
        let push = Push.sample(delivery: policy, targets: push(1).targets)
        async let first = handler.handle([try delivery(push, redelivered: false)])
        try await eventually("the push is in flight") { gateway.sent.count == 3 }
        // Another push of the same batch waits, too, and is then sent.
        let other = self.push(2, targets: 1)
        async let second = handler.handle([
            try delivery(other, redelivered: false), try delivery(push, redelivered: true),
        ])
        try await eventually("the second handling waits") { cache.waiting == 1 }
        #expect(gateway.sent.count == 3)
        gate.open()
        let one = try outcomes(try await first)
        let two = try outcomes(try await second)
        #expect(one.count == 3 && one.allSatisfy { $0.answer == .accepted(id: nil) })
        #expect(Set(two.map(\.device)) == Set(one.map(\.device) + [other.targets[0].device]))
        #expect(two.allSatisfy { $0.answer == .accepted(id: nil) })
        #expect(gateway.sent.count == 4)
        #expect(cache.waiting == 0)
    }

    /// The times of a run with an outage of the provider: the second copy came 14 minutes after the first.
    @Test(arguments: [(Duration.seconds(14 * 60), 3), (.seconds(74 * 60), 3), (.seconds(76 * 60), 6)])
    func `given a push that was published twice, when its copy is retried later, then it is sent once until 75 minutes`(
        later: Duration, requests: Int
    ) async throws {
        let gateway = ScriptedGateway()
        let handler = handler(gateway, nil)
        let push = push(1)
        let first = try outcomes(try await handler.handle([try delivery(push, redelivered: false)]))
        time.advance(by: later)
        let second = try outcomes(try await handler.handle([try delivery(push, redelivered: false)]))
        #expect(gateway.sent.count == requests)
        #expect(requests > 3 || second == first)
        #expect(second.count == 3)
    }

    @Test func `given one batch with the same push twice, then its targets are sent to once`() async throws {
        let gateway = ScriptedGateway()
        let handler = handler(gateway, RecentOutcomeCache(clock: time.clock))
        let push = push(1)
        let verdicts = try await handler.handle([
            try delivery(push, redelivered: false), try delivery(self.push(2), redelivered: false),
            try delivery(push, redelivered: false),
        ])
        #expect(verdicts.count == 3 && verdicts.allSatisfy { $0.disposition == .done })
        #expect(gateway.sent.count == 6)
        let devices = Set(push.targets.map { Optional($0.device) })
        #expect(Set(try outcomes([verdicts[2]]).map(\.device)) == devices)
        #expect(Set(try outcomes([verdicts[0]]).map(\.device)).isSuperset(of: devices))
    }
}
