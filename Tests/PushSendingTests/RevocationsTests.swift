import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

/// Pushes to a former user of a device are not sent.
@Suite(.timeLimit(.minutes(2))) struct RevocationsTests {
    private static let app = AppID(rawValue: "demo")!
    private static let registered = Timestamp(milliseconds: 1_767_220_000_000)
    private let time = ManualTime()
    private let gateway = ScriptedGateway()
    private let revocations = Revocations(provider: .apns, capacity: 1000, logger: .silent)

    private func handler(_ gateway: ScriptedGateway? = nil) -> PushStageHandler {
        let route = ProviderRoute(app: Self.app, environment: .production)
        let routes = ProviderRoutes(
            [route: gateway ?? self.gateway], provider: .apns, clock: time.clock, logger: .silent)
        return PushStageHandler(
            provider: .apns, routes: routes, revocations: revocations, clock: time.clock, logger: .silent)
    }

    private func handle(_ push: Push, by handler: PushStageHandler) async throws -> Verdict {
        let inbound = Inbound(
            queue: .senderPushes(.apns, .interactive, Self.app), exchange: "pushes",
            routingKey: "apns.interactive.demo", body: try push.wireBody(), attempt: 1, redelivered: false,
            firstSeen: .sample)
        return try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
    }

    private func outcomes(_ verdict: Verdict) throws -> [String: [Outcome]] {
        var byKey: [String: [Outcome]] = [:]
        for outbound in verdict.outbound {
            byKey[outbound.routingKey] = try Outcomes.decode(wireBody: outbound.body).outcomes
        }
        return byKey
    }

    private static func event(
        _ device: UUID, _ provider: Provider = .apns, revokes: Timestamp? = registered
    ) throws -> [UInt8] {
        let id = UUID()
        return try DeviceEvent(
            trace: Trace(id: id, correlation: "c", causation: "c"), app: app, change: .signedOut,
            user: UserID(rawValue: "a")!,
            device: .init(id: device, provider: provider, environment: .production, kind: .alert, active: false),
            at: .sample, revokes: revokes
        ).wireBody()
    }

    private func targets(_ count: Int) -> [Push.Target] {
        (0..<count).map {
            .sample(token: String($0 + 0x1000_0000, radix: 16), registeredAt: Self.registered)
        }
    }

    @Test func `revoked targets are skipped, and the others are sent`() async throws {
        let targets = targets(500)
        let lost = targets.indices.filter { $0.isMultiple(of: 3) }
        revocations.add(try lost.map { try Self.event(targets[$0].device) })
        let verdict = try await handle(.sample(targets: targets), by: handler())
        #expect(verdict.disposition == .done)
        let outcomes = try outcomes(verdict)
        #expect(outcomes.keys.sorted() == ["apns.accepted", "apns.skipped"])
        let skipped = try #require(outcomes["apns.skipped"])
        #expect(Set(skipped.map(\.device)) == Set(lost.map { targets[$0].device }) && skipped.count == lost.count)
        #expect(skipped.allSatisfy { $0.answer == .skipped(reason: "revoked") })
        #expect(gateway.sent.count == 500 - lost.count)
        #expect(Set(gateway.sent).isDisjoint(with: lost.map { targets[$0].token }))
        #expect(outcomes["apns.accepted"]?.count == 500 - lost.count)
    }

    @Test func `a revoked notification is skipped, and other pushes to the device are sent`() async throws {
        let target = targets(1)[0]
        let revocation = NotificationRevocation(
            trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: Self.app,
            notifications: [target.notification], at: .sample)
        revocations.add([try revocation.wireBody()])
        #expect(revocations.generation > 0)
        let skipped = try outcomes(await handle(.sample(targets: [target]), by: handler()))
        #expect(skipped["apns.skipped"]?.map(\.answer) == [.skipped(reason: "revoked")])
        var other = target
        other.notification = UUID()
        let sent = try outcomes(await handle(.sample(targets: [other]), by: handler()))
        #expect(sent.keys.sorted() == ["apns.accepted"] && gateway.sent == [target.token])
    }

    @Test func `a registration after the revocation is sent to`() async throws {
        let device = UUID()
        revocations.add([try Self.event(device)])
        for (delay, isSent) in [(-1, false), (0, false), (1, true)] {
            let push = Push.sample(targets: [
                .sample(device: device, registeredAt: Self.registered + .milliseconds(delay))
            ])
            let before = gateway.sent.count
            let verdict = try await handle(push, by: handler())
            #expect(gateway.sent.count - before == (isSent ? 1 : 0))
            #expect(try outcomes(verdict).keys.first == (isSent ? "apns.accepted" : "apns.skipped"))
        }
    }

    @Test func `events that revoke nothing, are of another provider or unreadable are ignored`() async throws {
        let device = UUID()
        revocations.add([
            try Self.event(device, revokes: nil), try Self.event(device, .fcm), Array("{}".utf8), [],
        ])
        #expect(revocations.generation == 0)
        _ = try await handle(.sample(targets: [.sample(device: device, registeredAt: Self.registered)]), by: handler())
        #expect(gateway.sent.count == 1)
    }

    @Test func `given a push held by a paused route, when the route resumes, then its targets are checked again`()
        async throws
    {
        let push = Push.sample(targets: targets(3))
        let handler = handler()
        gateway.answer { _, _ in .unreachable(reason: "away") }
        let held = try await handle(push, by: handler)
        guard case .postpone = held.disposition else {
            Issue.record("not held: \(held.disposition)")
            return
        }
        revocations.add(try push.targets.prefix(2).map { try Self.event($0.device) })
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        let before = gateway.sent.count
        time.advance(by: .seconds(3600))
        let verdict = try await handle(push, by: handler)
        // The remaining target becomes the probe.
        #expect(gateway.sent.dropFirst(before) == [push.targets[2].token])
        let outcomes = try outcomes(verdict)
        #expect(outcomes["apns.skipped"]?.count == 2 && outcomes["apns.accepted"]?.count == 1)
        #expect(verdict.disposition == .done)
    }

    @Test func `given a probe with revoked targets only, then the next push probes`() async throws {
        let push = Push.sample(targets: targets(2))
        let handler = handler()
        gateway.answer { _, _ in .unreachable(reason: "away") }
        _ = try await handle(push, by: handler)
        revocations.add(try push.targets.map { try Self.event($0.device) })
        time.advance(by: .seconds(3600))
        #expect(try await handle(push, by: handler).disposition == .done)
        gateway.answer { _, _ in .settled(.accepted(id: nil)) }
        let next = try await handle(.sample(), by: handler)
        #expect(try outcomes(next).keys.sorted() == ["apns.accepted"])
    }

    @Test func `given a push waiting for the quota, when it is revoked, then it is skipped`() async throws {
        let quota = QuotaLimiter("p", provider: .apns, perMinute: 600, clock: time.clock, logger: .silent)
        let gateway = ScriptedGateway(quota: quota)
        let handler = handler(gateway)
        // Uses up the bucket.
        while case .granted = await quota.admit(1000, .interactive, until: time.uptime) {}
        let push = Push.sample(targets: targets(1))
        async let verdict = handle(push, by: handler)
        try await eventually("it waits") { time.sleepers > 0 }
        revocations.add([try Self.event(push.targets[0].device)])
        time.advance(by: .seconds(60))
        #expect(try outcomes(await verdict).keys.sorted() == ["apns.skipped"])
        #expect(gateway.sent.isEmpty)
    }

    @Test func `a redelivery gets the same outcomes`() async throws {
        let push = Push.sample(targets: targets(2))
        let handler = handler()
        revocations.add([try Self.event(push.targets[0].device)])
        let first = try await handle(push, by: handler)
        let second = try await handle(push, by: handler)
        #expect(try outcomes(first).mapValues { $0.map(\.device) } == outcomes(second).mapValues { $0.map(\.device) })
        #expect(gateway.sent == [push.targets[1].token])
    }

    @Test func `revocations are complete for a week before the first push, or since the last dropped one`() throws {
        let revocations = Revocations(provider: .apns, capacity: 4, logger: .silent)
        let retention = StreamName.senderRevocations.retention
        let since = Timestamp.sample - retention + .seconds(3600)
        #expect(revocations.completeSince(now: .sample) == since)
        #expect(revocations.completeSince(now: .sample + retention) == since)
        // Two tables of two devices: the fifth device drops the first two.
        for number in 0..<5 {
            let lost = DeviceEvent.loss(
                of: UUID(), registeredAt: Self.registered, at: .sample + .seconds(number))
            revocations.add([try lost.wireBody()])
            #expect(revocations.completeSince(now: .sample) == (number < 4 ? since : .sample + .seconds(1)))
        }
    }

    @Test func `given a notification that is revoked again and again, then the others stay revoked`() throws {
        // Room for four notifications.
        let revocations = Revocations(provider: .apns, capacity: 16, logger: .silent)
        let targets = targets(4)
        for second in 0..<12 {
            let id = targets[min(second, 3)].notification
            let revocation = NotificationRevocation(
                trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: Self.app,
                notifications: [id, targets[0].notification], at: .sample + .seconds(second))
            revocations.add([try revocation.wireBody()])
        }
        #expect(revocations.revoked(among: targets.map { ($0, nil) }, of: Self.app) == [0, 1, 2, 3])
    }

    @Test func `given a revoked campaign, then its pushes are not sent, and those of others are`() async throws {
        let handler = handler()
        let campaign = UUID()
        let revocation = NotificationRevocation(
            trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: Self.app, notifications: [campaign],
            at: .sample)
        revocations.add([try revocation.wireBody()])
        var push = Push.sample(targets: targets(2))
        push.campaign = campaign
        let refused = try outcomes(await handle(push, by: handler))
        #expect(refused["apns.skipped"]?.map(\.answer) == [.skipped(reason: "revoked"), .skipped(reason: "revoked")])
        #expect(gateway.sent.isEmpty)
        var other = Push.sample(targets: targets(2))
        other.trace = other.trace.next(id: UUID())
        other.campaign = UUID()
        #expect(try outcomes(await handle(other, by: handler))["apns.accepted"]?.count == 2)
        let request = TargetRequest(of: 0, to: targets(1)[0], campaign: campaign)
        #expect(revocations.isRevoked(request, since: 0))
        #expect(!revocations.isRevoked(request, since: revocations.generation))
    }

    @Test func `given a stream with a gap, then pushes from before the next revocation are not sent`() async throws {
        let handler = handler()
        let push = Push.sample(targets: targets(1))
        revocations.noteGap(now: .sample + .seconds(1))
        let refused = try outcomes(await handle(push, by: handler))
        #expect(refused["apns.skipped"]?.map(\.answer) == [.skipped(reason: "older-than-revocations")])
        #expect(gateway.sent.isEmpty)

        func lose(at moment: Timestamp) throws {
            revocations.add([try DeviceEvent.loss(of: UUID(), registeredAt: Self.registered, at: moment).wireBody()])
        }
        try lose(at: .sample - .seconds(7200))
        #expect(revocations.completeSince(now: .sample) == .sample - .seconds(7200) + Revocations.margin)
        let next = Push.sample(targets: targets(1))
        #expect(try outcomes(await handle(next, by: handler)).keys.sorted() == ["apns.accepted"])

        // A later gap counts, up to the moment in which it is noticed; later revocations move nothing.
        revocations.noteGap(now: .sample + .seconds(1))
        for hours in 5...6 { try lose(at: .sample + .seconds(hours * 3600)) }
        #expect(revocations.completeSince(now: .sample) == .sample + .seconds(1))
    }
}
