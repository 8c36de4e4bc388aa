import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import PushSending
import TestSupport
import Testing

/// Evidence against tokens travels with how the lane fares.
@Suite(.timeLimit(.minutes(2))) struct LanePulsesTests {
    private let time = ManualTime()
    private let gateway = ScriptedGateway { target, _ in
        target.token.secret.hasSuffix("7")
            ? .settled(.unregistered(since: nil, reason: "Unregistered")) : .settled(.accepted(id: nil))
    }

    private func handler() -> PushStageHandler {
        let key = LaneKey(app: AppID(rawValue: "demo")!, environment: .production)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let lanes = PushLanes([key: gateway], provider: .apns, clock: time.clock, logger: logger)
        return PushStageHandler(provider: .apns, lanes: lanes, clock: time.clock, logger: logger)
    }

    private func pulses(_ count: Int, by handler: PushStageHandler) async throws -> [String:
        LanePulse?]
    {
        let push = Push.sample(targets: (0..<count).map { .sample(token: String($0 + 0x1000_0000, radix: 16)) })
        let inbound = Inbound(
            queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        let verdict = try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
        return Dictionary(
            uniqueKeysWithValues: try verdict.outbound.map {
                ($0.routingKey, try Outcomes.decode(wireBody: $0.body).pulse)
            })
    }

    @Test func `evidence tells what was answered in its minute, and when the last was accepted`() async throws {
        let handler = handler()
        let first = try await pulses(16, by: handler)
        #expect(first["apns.accepted"] == .some(nil))
        let pulse = try #require(first["apns.unregistered"] ?? nil)
        #expect(pulse.answered == 16)
        #expect(pulse.minute == .sample)
        #expect(pulse.acceptedAt == .sample)

        time.advance(by: .seconds(59))
        let second = try #require(try await pulses(16, by: handler)["apns.unregistered"] ?? nil)
        #expect((second.answered, second.sender, second.minute) == (32, pulse.sender, pulse.minute))

        time.advance(by: .seconds(1))
        gateway.answer { _, _ in .settled(.unregistered(since: nil, reason: "Unregistered")) }
        let third = try #require(try await pulses(2, by: handler)["apns.unregistered"] ?? nil)
        #expect((third.answered, third.minute) == (2, .sample + .seconds(60)))
        #expect(third.acceptedAt == .sample + .seconds(59))
    }

    @Test func `what never reached the provider is no answer of its`() async throws {
        gateway.answer { target, _ in
            switch target.token.secret.last {
            case "7": .settled(.unregistered(since: nil, reason: "Unregistered"))
            case "8": .settled(.rejected(reason: "BadCollapseId", suspectToken: false))
            case "9": .settled(.accepted(id: nil))
            default: .refusedHere(LocalRejection("payload-too-large"))
            }
        }
        let pulses = try await pulses(16, by: handler())
        #expect((pulses["apns.unregistered"] ?? nil)?.answered == 3)
        #expect((pulses["apns.rejected"] ?? nil)?.answered == 3)
    }

    @Test func `B08: a round that shows a storm settles nothing, and tells of it all the same`() async throws {
        let handler = handler()
        // Nineteen of a hundred: too few to be one. They are reported.
        gateway.answer { target, _ in
            target.token.secret < "10000013"
                ? .settled(.rejected(reason: "BadDeviceToken", suspectToken: true)) : .settled(.accepted(id: nil))
        }
        let first = try #require(try await pulses(100, by: handler)["apns.rejected"] ?? nil)
        #expect(first.storm == nil)
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
        let pulse = try #require(word.pulse)
        #expect((pulse.sender, pulse.answered) == (first.sender, 100))
        // The nineteen lie in it: both moments are of the clock that dates outcomes.
        #expect(pulse.storm == .init(since: .sample + .seconds(-40), until: .sample + .seconds(20)))
        // A push that is held meanwhile has nothing to add.
        let held = try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
        #expect(held.outbound.isEmpty)
    }

    @Test func `what the provider did not answer counts for nothing`() async throws {
        gateway.answer { target, _ in
            target.token.secret.hasSuffix("7")
                ? .settled(.unregistered(since: nil, reason: "Unregistered")) : .settled(.misconfigured(reason: "x"))
        }
        let pulse = try #require(try await pulses(16, by: handler())["apns.unregistered"] ?? nil)
        #expect(pulse.answered == 1)
        #expect(pulse.acceptedAt == nil)
    }
}
