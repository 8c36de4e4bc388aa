import AMQP
import Messaging
import PushProtocol
import Testing

@testable import ServiceConnections
@testable import ServiceKit

@Suite struct StageConditionTests {
    private let missing = AMQPError(.channelClosed(replyCode: 404), operation: "consume", detail: "no such queue")

    private func state(
        _ conditions: QueueStatus.State..., on connection: AMQPConnectionState = .connected,
        waiting: [String: AMQPError?] = [:]
    ) -> Readiness.State {
        let queues = conditions.map { QueueStatus(queue: .rulesEvents, state: $0) }
        return StageCondition.state(of: queues, on: connection, waiting: waiting)
    }

    @Test func `a consuming or paused stage is ready`() {
        #expect(state(.consuming, .paused, .draining) == .holds)
    }

    @Test func `a stage that holds messages reports the outage`() {
        #expect(
            state(.consuming, .holding("the database"))
                == .waiting("holding the messages of rules.events: the database"))
    }

    @Test func `a stage before its start is not ready`() {
        #expect(state(.starting) == .waiting("rules.events is not consumed yet"))
    }

    @Test func `a queue that cannot be consumed is reported with the reason`() {
        let reason = Readiness.State.waiting("rules.events cannot be consumed: consume: no such queue")
        #expect(state(.consuming, waiting: ["rules.events": missing]) == reason)
        #expect(state(.consuming, waiting: ["rules.outcomes": missing]) == .holds)
        #expect(state(.consuming, waiting: ["rules.events": nil]) == .holds)
    }

    @Test func `a missing connection is reported by another condition`() {
        #expect(state(.consuming, on: .closed, waiting: ["rules.events": missing]) == .holds)
    }
}
