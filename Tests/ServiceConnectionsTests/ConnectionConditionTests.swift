import AMQP
import Testing

@testable import ServiceConnections
@testable import ServiceKit

@Suite struct ConnectionConditionTests {
    private let condition = ConnectionCondition()
    private let start = ContinuousClock.now

    @Test func `before the first connection the condition waits, with the last error`() {
        let error = AMQPError(.unreachable, operation: "connect to broker:5672", detail: "refused")
        #expect(
            condition.state(of: .connecting(since: start, lastError: error), now: start)
                == .waiting("not connected: connect to broker:5672: refused"))
    }

    @Test func `a short interruption is ignored, a long one is not`() {
        #expect(condition.state(of: .connected, now: start) == .holds)
        let away = AMQPConnectionState.connecting(since: start, lastError: nil)
        #expect(condition.state(of: away, now: start + .seconds(29)) == .holds)
        #expect(condition.state(of: away, now: start + .seconds(30)) == .waiting("not connected yet"))
        #expect(condition.state(of: .connected, now: start + .seconds(31)) == .holds)
    }

    @Test func `a blocked or closed connection is not ready`() {
        #expect(
            condition.state(of: .blocked(reason: "low on memory"))
                == .waiting("the broker blocks publishers: low on memory"))
        #expect(condition.state(of: .closed) == .waiting("closed"))
    }
}
