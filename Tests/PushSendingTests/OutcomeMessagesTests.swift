import FoundationEssentials
import Messaging
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

struct OutcomeMessagesTests {
    private let health = RouteHealth(sender: UUID(), minute: .sample, answered: 1, acceptedAt: nil)

    private func push(_ targets: Int, environment: ProviderEnvironment = .production) -> Push {
        .sample(environment: environment, targets: (0..<targets).map { _ in .sample() })
    }

    private func delivery(_ push: Push) -> Delivery<Push> {
        Delivery(
            inbound: Inbound(
                queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "", body: []),
            message: push)
    }

    /// The messages about accepted targets, except for targets with another `answer`. Indices refer to `pushes`.
    private func messages(
        _ pushes: [Push], _ answer: (Push.Target) -> Outcome.Answer? = { _ in nil }
    ) -> [OutcomeMessages.OutcomeMessage] {
        RouteBatch.byRoute(pushes.map(delivery)).flatMap { batch in
            var settled = TargetOutcomes()
            for (pushIndex, push) in batch.pushes.enumerated() {
                for target in push.message.targets {
                    settled.append(
                        Outcome(
                            notification: target.notification, device: target.device,
                            answer: answer(target) ?? .accepted(id: nil), at: .sample,
                            registeredAt: target.registeredAt), of: pushIndex)
                }
            }
            let healthByPush = Dictionary(uniqueKeysWithValues: batch.indices.indices.map { ($0, health) })
            return OutcomeMessages.messages(settled.partitioned, of: batch.pushes, healthByPush: healthByPush).map {
                OutcomeMessages.OutcomeMessage(
                    pushIndices: $0.pushIndices.map { batch.indices[$0] }, routingKey: $0.routingKey,
                    outcomes: $0.outcomes)
            }
        }
    }

    @Test func `acceptances of several pushes share a message, other outcomes do not`() {
        let pushes = (0..<4).map { _ in push(200) }
        let bad = pushes[1].targets[3].device
        let messages = messages(pushes) {
            $0.device == bad ? .rejected(reason: "BadDeviceToken", suspectToken: true) : nil
        }
        // Two pushes fit into one message of 500 outcomes.
        #expect(messages.map(\.pushIndices) == [[1], [0, 1], [2, 3]])
        #expect(messages.map(\.routingKey) == ["apns.rejected", "apns.accepted", "apns.accepted"])
        #expect(messages.map(\.outcomes.outcomes.count) == [1, 399, 400])
        #expect(messages[0].outcomes.outcomes.first?.device == bad)
        #expect(messages.map { $0.outcomes.routeHealth != nil } == [true, false, false])
        #expect(Set(messages.map(\.outcomes.trace.id)).count == 3)
        #expect(messages[1].outcomes.trace.correlation == pushes[0].trace.correlation)
        let acceptances = messages.flatMap(\.outcomes.outcomes).compactMap(\.device)
        #expect(acceptances.count == 800)
        #expect(Set(acceptances) == Set(pushes.flatMap(\.targets).map(\.device)))
    }

    @Test func `acceptances carry the time of the last one and no registration times`() throws {
        let push = push(3)
        var settled = TargetOutcomes()
        for (index, target) in push.targets.enumerated() {
            settled.append(
                Outcome(
                    notification: target.notification, device: target.device, answer: .accepted(id: nil),
                    at: .sample + .milliseconds(index == 1 ? 9 : index), registeredAt: target.registeredAt), of: 0)
        }
        let messages = OutcomeMessages.messages(settled.partitioned, of: [delivery(push)])
        let acceptances = try #require(messages.first).outcomes.outcomes
        #expect(acceptances.allSatisfy { $0.at == .sample + .milliseconds(9) && $0.registeredAt == nil })
        #expect(acceptances.map(\.device) == push.targets.map(\.device))
        let body = String(decoding: try messages[0].outcomes.wireBody(), as: UTF8.self)
        #expect(body.contains(#""accepted":{"at":"#) && !body.contains(#""outcomes":["#))
    }

    @Test func `message ids derive from the pushes`() {
        let pushes = [push(1), push(2)]
        let first = messages(pushes), second = messages(pushes)
        #expect(first.map(\.outcomes) == second.map(\.outcomes))
        let fewer = messages([pushes[0]])
        #expect(fewer.map(\.outcomes.trace.id) != first.map(\.outcomes.trace.id))
    }

    @Test func `routes do not share a message`() {
        let messages = messages([push(1), push(1, environment: .development), push(1)])
        #expect(messages.map(\.pushIndices) == [[0, 2], [1]])
        #expect(messages.map(\.outcomes.environment) == [.production, .development])
    }
}
