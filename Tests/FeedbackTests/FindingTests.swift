import FoundationEssentials
import PushProtocol
import Testing

@testable import Feedback

@Suite struct FindingTests {
    static let device = UUID(uuidString: "33333333-3333-5333-8333-333333333333")!
    static let registered = Timestamp(milliseconds: 1_767_220_000_000)
    static let observed = Timestamp(milliseconds: 1_767_225_600_000)

    static func batch(_ answers: [Outcome.Answer], device: UUID? = device) -> Outcomes {
        Outcomes(
            trace: Trace(
                id: UUID(uuidString: "11111111-1111-5111-8111-111111111111")!, correlation: "e", causation: "c"),
            app: AppID(rawValue: "family-portal")!, origin: .apns, environment: .production, lane: .interactive,
            outcomes: answers.map {
                Outcome(
                    notification: UUID(uuidString: "22222222-2222-5222-8222-222222222222")!, device: device, answer: $0,
                    at: observed, registeredAt: registered)
            })
    }

    @Test func `a provider's timestamp is what the registration is compared with`() throws {
        let since = Timestamp(milliseconds: 1_767_225_000_000)
        let commands = Self.batch([.unregistered(since: since, reason: "Unregistered")]).commands
        #expect(
            commands.map(\.command) == [
                .deactivate(device: Self.device, notRegisteredSince: since, reason: "Unregistered")
            ])
    }

    @Test func `without a timestamp, only the registration that was addressed is meant`() {
        let commands = Self.batch([.unregistered(since: nil, reason: "UNREGISTERED")]).commands
        #expect(
            commands.map(\.command) == [
                .deactivate(device: Self.device, notRegisteredSince: Self.registered, reason: "UNREGISTERED")
            ])
    }

    @Test func `a suspicion is kept as evidence and deactivates nothing`() {
        let batch = Self.batch([.rejected(reason: "BadDeviceToken", suspectToken: true)])
        #expect(batch.findings.map(\.verdict) == [.suspect])
        #expect(batch.commands.isEmpty)
    }

    @Test(arguments: [
        Outcome.Answer.accepted(id: nil), .rejected(reason: "PayloadTooLarge", suspectToken: false),
        .throttled(reason: "TooManyRequests"), .misconfigured(reason: "BadTopic"), .expired,
        .skipped(reason: "unconfigured"),
    ])
    func `an answer that is not about the token touches none`(answer: Outcome.Answer) {
        #expect(Self.batch([answer]).findings.isEmpty)
    }

    @Test func `an outcome without a device says nothing about one`() {
        #expect(Self.batch([.unregistered(since: nil, reason: "x")], device: nil).findings.isEmpty)
    }

    @Test func `a redelivered batch makes the same commands with the same ids`() {
        let batch = Self.batch([.unregistered(since: nil, reason: "a"), .unregistered(since: nil, reason: "b")])
        #expect(batch.commands == batch.commands)
        #expect(Set(batch.commands.map(\.trace.id)).count == 2)
    }
}
