import FoundationEssentials
import Messaging
import PushProtocol
import TestSupport
import Testing

@testable import PushSending

struct OutcomeBatchesTests {
    private let pulse = LanePulse(sender: UUID(), minute: .sample, answered: 1, acceptedAt: nil)

    private func push(_ targets: Int, environment: ProviderEnvironment = .production) -> Push {
        .sample(environment: environment, targets: (0..<targets).map { _ in .sample() })
    }

    /// Every target accepted, but for those that `answer` has another answer for.
    private func settled(
        _ pushes: [Push], _ answer: (Push.Target) -> Outcome.Answer? = { _ in nil }
    ) -> [OutcomeBatches.Settled] {
        pushes.map { push in
            OutcomeBatches.Settled(
                delivery: Delivery(
                    inbound: Inbound(
                        queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "",
                        body: []),
                    message: push),
                outcomes: push.targets.map {
                    Outcome(
                        notification: $0.notification, device: $0.device, answer: answer($0) ?? .accepted(id: nil),
                        at: .sample, registeredAt: $0.registeredAt)
                }, pulse: pulse)
        }
    }

    @Test func `what is accepted of pushes that came together leaves in one message, all else by itself`() {
        let pushes = (0..<4).map { _ in push(200) }
        let bad = pushes[1].targets[3].device
        let settled = settled(pushes) {
            $0.device == bad ? .rejected(reason: "BadDeviceToken", suspectToken: true) : nil
        }
        let batches = OutcomeBatches.batches(settled)
        // Two pushes fit into one message of 500 outcomes.
        #expect(batches.map(\.places) == [[1], [0, 1], [2, 3]])
        #expect(batches.map(\.routingKey) == ["apns.rejected", "apns.accepted", "apns.accepted"])
        #expect(batches.map(\.outcomes.outcomes.count) == [1, 399, 400])
        #expect(batches[0].outcomes.outcomes.first?.device == bad)
        #expect(batches.map { $0.outcomes.pulse != nil } == [true, false, false])
        #expect(Set(batches.map(\.outcomes.trace.id)).count == 3)
        #expect(batches[1].outcomes.trace.correlation == pushes[0].trace.correlation)
        let told = batches.flatMap(\.outcomes.outcomes).compactMap(\.device)
        #expect(told.count == 800)
        #expect(Set(told) == Set(pushes.flatMap(\.targets).map(\.device)))
    }

    @Test func `the same pushes make the same messages, and others make others`() {
        let pushes = [push(1), push(2)]
        let first = OutcomeBatches.batches(settled(pushes)), second = OutcomeBatches.batches(settled(pushes))
        #expect(first.map(\.outcomes) == second.map(\.outcomes))
        let fewer = OutcomeBatches.batches(settled([pushes[0]]))
        #expect(fewer.map(\.outcomes.trace.id) != first.map(\.outcomes.trace.id))
    }

    @Test func `lanes do not share a message`() {
        let batches = OutcomeBatches.batches(settled([push(1), push(1, environment: .development), push(1)]))
        #expect(batches.map(\.places) == [[0, 2], [1]])
        #expect(batches.map(\.outcomes.environment) == [.production, .development])
    }
}
