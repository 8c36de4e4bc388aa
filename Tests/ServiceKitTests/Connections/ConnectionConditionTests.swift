import AMQP
import Testing

@testable import ServiceKit

@Suite struct ConnectionConditionTests {
    private let condition = ConnectionCondition()
    private let start = ContinuousClock.now

    @Test func `before the first connection it waits, with the last error`() {
        let error = AMQPError(.unreachable, operation: "connect to broker:5672", detail: "refused")
        #expect(
            condition.state(of: .connecting(since: start, lastError: error), now: start)
                == .waiting("not connected: connect to broker:5672: refused"))
    }

    @Test func `a short interruption is not told, a long one is`() {
        #expect(condition.state(of: .connected, now: start) == .holds)
        let away = AMQPConnectionState.connecting(since: start, lastError: nil)
        #expect(condition.state(of: away, now: start + .seconds(29)) == .holds)
        #expect(condition.state(of: away, now: start + .seconds(30)) == .waiting("not connected yet"))
        #expect(condition.state(of: .connected, now: start + .seconds(31)) == .holds)
    }

    @Test func `a blocked or closed connection takes no work`() {
        #expect(
            condition.state(of: .blocked(reason: "low on memory"))
                == .waiting("the broker takes no messages for now: low on memory"))
        #expect(condition.state(of: .closed) == .waiting("closed"))
    }
}
