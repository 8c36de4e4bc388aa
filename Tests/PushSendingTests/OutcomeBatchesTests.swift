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

    private func delivery(_ push: Push) -> Delivery<Push> {
        Delivery(
            inbound: Inbound(
                queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "", body: []),
            message: push)
    }

    /// What tells that every target was accepted, but for those that `answer` has another answer for; with the places
    /// that the pushes have here.
    private func batches(
        _ pushes: [Push], _ answer: (Push.Target) -> Outcome.Answer? = { _ in nil }
    ) -> [OutcomeBatches.Batch] {
        LaneBatch.lanes(of: pushes.map(delivery)).flatMap { lane in
            var settled = TargetOutcomes()
            for (place, push) in lane.pushes.enumerated() {
                for target in push.message.targets {
                    settled.append(
                        Outcome(
                            notification: target.notification, device: target.device,
                            answer: answer(target) ?? .accepted(id: nil), at: .sample,
                            registeredAt: target.registeredAt), of: place)
                }
            }
            let pulses = Dictionary(uniqueKeysWithValues: lane.places.indices.map { ($0, pulse) })
            return OutcomeBatches.batches(settled.divided, of: lane.pushes, pulses: pulses).map { batch in
                OutcomeBatches.Batch(
                    places: batch.places.map { lane.places[$0] }, routingKey: batch.routingKey, outcomes: batch.outcomes
                )
            }
        }
    }

    @Test func `what is accepted of pushes that came together leaves in one message, all else by itself`() {
        let pushes = (0..<4).map { _ in push(200) }
        let bad = pushes[1].targets[3].device
        let batches = batches(pushes) {
            $0.device == bad ? .rejected(reason: "BadDeviceToken", suspectToken: true) : nil
        }
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

    @Test func `acceptances are told as of the last one's moment, and without what only evidence needs`() throws {
        let push = push(3)
        var settled = TargetOutcomes()
        for (index, target) in push.targets.enumerated() {
            settled.append(
                Outcome(
                    notification: target.notification, device: target.device, answer: .accepted(id: nil),
                    at: .sample + .milliseconds(index == 1 ? 9 : index), registeredAt: target.registeredAt), of: 0)
        }
        let batches = OutcomeBatches.batches(settled.divided, of: [delivery(push)])
        let told = try #require(batches.first).outcomes.outcomes
        #expect(told.allSatisfy { $0.at == .sample + .milliseconds(9) && $0.registeredAt == nil })
        #expect(told.map(\.device) == push.targets.map(\.device))
        let body = String(decoding: try batches[0].outcomes.wireBody(), as: UTF8.self)
        #expect(body.contains(#""accepted":{"at":"#) && !body.contains(#""outcomes":["#))
    }

    @Test func `the same pushes make the same messages, and others make others`() {
        let pushes = [push(1), push(2)]
        let first = batches(pushes), second = batches(pushes)
        #expect(first.map(\.outcomes) == second.map(\.outcomes))
        let fewer = batches([pushes[0]])
        #expect(fewer.map(\.outcomes.trace.id) != first.map(\.outcomes.trace.id))
    }

    @Test func `lanes do not share a message`() {
        let batches = batches([push(1), push(1, environment: .development), push(1)])
        #expect(batches.map(\.places) == [[0, 2], [1]])
        #expect(batches.map(\.outcomes.environment) == [.production, .development])
    }
}
