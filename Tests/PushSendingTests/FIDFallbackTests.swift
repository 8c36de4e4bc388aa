import FoundationEssentials
import Logging
import Messaging
import Providers
import PushProtocol
import PushSending
import Testing
import TestSupport

/// A push to a rejected FID is retried once with the registration token of its installation.
@Suite(.timeLimit(.minutes(2))) struct FIDFallbackTests {
    private let time = ManualTime()
    /// Accepts tokens and rejects FIDs.
    private let gateway = ScriptedGateway { target, _ in
        target.address == .fid
            ? .settled(.unregistered(since: nil, reason: "UNREGISTERED")) : .settled(.accepted(id: "m"))
    }
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func handler(revocations: Revocations? = nil, over other: ScriptedGateway? = nil) -> PushStageHandler {
        let route = ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)
        let routes = ProviderRoutes([route: other ?? gateway], provider: .fcm, clock: time.clock, logger: logger)
        return PushStageHandler(
            provider: .fcm, routes: routes, revocations: revocations, clock: time.clock, logger: logger)
    }

    private func handle(_ push: Push, by handler: PushStageHandler) async throws -> Verdict {
        let inbound = Inbound(
            queue: .senderPushes(.fcm, .interactive, push.app), exchange: "pushes", routingKey: "k",
            body: try push.wireBody(), attempt: 1, firstSeen: .sample)
        return try #require(await handler.handle([Delivery(inbound: inbound, message: push)]).first)
    }

    private func outcomes(_ verdict: Verdict) throws -> [String: [Outcome]] {
        Dictionary(
            uniqueKeysWithValues: try verdict.outbound.map {
                ($0.routingKey, try Outcomes.decode(wireBody: $0.body).outcomes)
            })
    }

    private func push(_ fallbacks: String?...) -> Push {
        .sample(
            provider: .fcm,
            targets: fallbacks.enumerated().map {
                .sample(token: "fid\($0)", address: .fid, fallback: $1, owner: $0)
            })
    }

    @Test func `given an accepted token, then the outcome is accepted and names the reason against the FID`()
        async throws
    {
        let (push, handler) = (push("t0"), handler())
        let verdict = try await handle(push, by: handler)
        #expect(verdict.disposition == .done)
        let outcomes = try outcomes(verdict)
        #expect(outcomes.keys.sorted() == ["fcm.accepted.elsewhere"])
        let outcome = try #require(outcomes["fcm.accepted.elsewhere"]?.first)
        #expect(outcome.device == push.targets[0].device && outcome.registeredAt == push.targets[0].registeredAt)
        #expect(outcome.answer == .accepted(id: "m"))
        #expect(outcome.refusedFID == "UNREGISTERED" && outcome.elsewhere == nil)
        #expect(gateway.sent.map(\.secret) == ["fid0", "t0"])
    }

    @Test func `given a redelivery, then the cached outcome names the reason`() async throws {
        let (push, handler) = (push("t0", nil), handler())
        let first = try outcomes(try await handle(push, by: handler))
        #expect(try outcomes(try await handle(push, by: handler)) == first)
        #expect(gateway.sent.count == 3)
    }

    @Test func `given no token, then the FID is rejected and marked as a FID`() async throws {
        let outcomes = try outcomes(try await handle(push(nil), by: handler()))
        #expect(
            outcomes["fcm.unregistered"]?.map(\.answer) == [.unregistered(since: nil, reason: "UNREGISTERED")])
        #expect(outcomes["fcm.unregistered"]?.map(\.refusedFID) == ["UNREGISTERED"])
        #expect(outcomes["fcm.unregistered"]?.map(\.owner) == [UserHash(rawValue: 0)])
    }

    @Test(arguments: [
        SendResult.settled(.unregistered(since: nil, reason: "UNREGISTERED")),
        .settled(.rejected(reason: "SENDER_ID_MISMATCH", suspectToken: true)),
        .rejectedLocally(LocalRejection("malformed-token", suspectToken: true)),
    ])
    func `given a rejected token, then the rejection of the FID stands`(answer: SendResult) async throws {
        gateway.answer { target, _ in
            target.address == .fid ? .settled(.unregistered(since: nil, reason: "UNREGISTERED")) : answer
        }
        let outcomes = try outcomes(try await handle(push("t0"), by: handler()))
        #expect(outcomes.keys.sorted() == ["fcm.unregistered"])
        #expect(outcomes["fcm.unregistered"]?.map(\.refusedFID) == ["UNREGISTERED"])
    }

    @Test func `given no answer to the token, then the push is retried with its FID and its token`() async throws {
        gateway.answer { target, _ in
            target.address == .fid
                ? .settled(.unregistered(since: nil, reason: "UNREGISTERED"))
                : .backOff(floor: .seconds(10), reason: "UNAVAILABLE")
        }
        let push = push("t0")
        let verdict = try await handle(push, by: handler())
        guard case .retry = verdict.disposition else {
            Issue.record("not retried: \(verdict.disposition)")
            return
        }
        #expect(verdict.outbound.isEmpty && verdict.remainder == nil)
    }

    @Test(arguments: [SendResult.settled(.accepted(id: nil)), .settled(.rejected(reason: "x", suspectToken: false))])
    func `other answers to a FID are not retried`(answer: SendResult) async throws {
        gateway.answer { _, _ in answer }
        _ = try await handle(push("t0"), by: handler())
        #expect(gateway.sent.map(\.secret) == ["fid0"])
    }

    @Test func `given a revoked token, then nothing is sent to it`() async throws {
        let revocations = Revocations(provider: .fcm, logger: logger)
        let (app, token) = (AppID(rawValue: "demo")!, DeviceToken(secret: "t0"))
        let device = DerivedID.device(app: app, provider: .fcm, environment: .production, token: token)
        let event = DeviceEvent(
            trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: app, change: .signedOut,
            user: UserID(rawValue: "a")!,
            device: .init(id: device, provider: .fcm, environment: .production, kind: .fcmToken, active: false),
            at: .sample, revokes: Timestamp(milliseconds: 1))
        revocations.add([try event.wireBody()])
        let outcomes = try outcomes(try await handle(push("t0", "t1"), by: handler(revocations: revocations)))
        #expect(outcomes["fcm.unregistered"]?.count == 1 && outcomes["fcm.accepted.elsewhere"]?.count == 1)
        #expect(gateway.sent.map(\.secret).sorted() == ["fid0", "fid1", "t1"])
    }

    @Test func `given an exhausted quota, then the push is held and the FID is not reported`() async throws {
        // Less than one message a second: the request to the FID uses the quota up.
        let quota = QuotaLimiter("p", provider: .fcm, perMinute: 60, clock: time.clock, logger: logger)
        time.advance(by: .seconds(61))
        let gateway = ScriptedGateway(quota: quota) { _, _ in
            .settled(.unregistered(since: nil, reason: "UNREGISTERED"))
        }
        let verdict = try await handle(push("t0"), by: handler(over: gateway))
        guard case .postpone = verdict.disposition else {
            Issue.record("not held: \(verdict.disposition)")
            return
        }
        #expect(verdict.outbound.isEmpty && verdict.remainder == nil)
        #expect(gateway.sent.map(\.secret) == ["fid0"])
    }

    @Test func `only rejected FIDs are retried, each with its own token`() async throws {
        gateway.answer { target, _ in
            target.token.secret.hasSuffix("3")
                ? .settled(.unregistered(since: nil, reason: "UNREGISTERED")) : .settled(.accepted(id: nil))
        }
        let targets = (0..<30).map { number in
            Push.Target.sample(token: "fid\(number)", address: .fid, fallback: "token-of-\(number)x")
        }
        let outcomes = try outcomes(try await handle(.sample(provider: .fcm, targets: targets), by: handler()))
        #expect(outcomes["fcm.accepted"]?.count == 27 && outcomes["fcm.accepted.elsewhere"]?.count == 3)
        let again = gateway.sent.map(\.secret).filter { $0.hasPrefix("token") }
        #expect(again.sorted() == ["token-of-13x", "token-of-23x", "token-of-3x"])
    }
}
