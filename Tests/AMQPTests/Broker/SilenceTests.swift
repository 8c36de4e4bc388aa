import Testing
import TestSupport

@testable import AMQP

/// Brokers that do not answer: frozen, overloaded, or unreachable.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct SilenceTests {
    /// A publish to a frozen broker blocks forever in librabbitmq 0.11 (alanxz/rabbitmq-c #780).
    @Test func `a silent broker is detected after two heartbeats and its messages are published again`()
        async throws
    {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withProxy { proxy in
                let configuration = try RealBroker.configuration(through: proxy, heartbeat: .seconds(1))
                try await RealBroker.withPublisher(configuration) { publisher in
                    let answer = try await publisher.publish([.to(queue, "first")])
                    #expect(answer == [.confirmed])
                    proxy.freeze()
                    let publishing = Task { try await publisher.publish((0..<2000).map { .to(queue, "\($0)") }) }
                    try await eventually(within: .seconds(15)) {
                        guard case .connecting = publisher.state else { return false }
                        return true
                    }
                    proxy.cut()
                    proxy.resumeTraffic()
                    #expect(try await publishing.value == Array(repeating: .confirmed, count: 2000))
                }
            }
        }
    }

    /// More data than all socket buffers hold blocks the thread in `send` forever (alanxz/rabbitmq-c #519).
    @Test func `the watchdog ends a blocked send and all messages are published again`() async throws {
        try await RealBroker.withQueue([:]) { queue in
            try await RealBroker.withProxy { proxy in
                let logs = CapturingLogger()
                let configuration = try RealBroker.configuration(through: proxy, heartbeat: .seconds(1))
                // The broker's size limit is 2 MiB; together the messages exceed every buffer.
                let window = AMQPPublishWindow(messages: 50, bytes: 32_000_000)
                try await RealBroker.withPublisher(configuration, window: window, logger: logs.logger) { publisher in
                    try await eventually { publisher.state == .connected }
                    proxy.freeze()
                    let body = [UInt8](repeating: 7, count: 1_600_000)
                    let message = AMQPMessage(exchange: "", routingKey: queue, body: body)
                    let publishing = Task { try await publisher.publish(Array(repeating: message, count: 10)) }
                    try await eventually(within: .seconds(15)) {
                        logs.lines.contains { $0.message.contains("was stuck") }
                    }
                    proxy.cut()
                    proxy.resumeTraffic()
                    let answer = try await publishing.value
                    #expect(answer == Array(repeating: .confirmed, count: 10))
                }
            }
        }
    }

    @Test func `an idle connection detects a dead broker`() async throws {
        try await RealBroker.withProxy { proxy in
            let configuration = try RealBroker.configuration(through: proxy, heartbeat: .seconds(1))
            try await RealBroker.withConsumer(configuration) { consumer in
                try await eventually { consumer.state == .connected }
                proxy.freeze()
                try await eventually(within: .seconds(10)) {
                    guard case .connecting(_, let error?) = consumer.state else { return false }
                    return error.code == .connectionLost
                }
                proxy.cut()
                proxy.resumeTraffic()
                try await eventually { consumer.state == .connected }
            }
        }
    }

    @Test func `a broker alarm pauses publishing until it clears`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withProxy { proxy in
                try await RealBroker.withPublisher(RealBroker.configuration(through: proxy)) { publisher in
                    let answer = try await publisher.publish([.to(queue, "first")])
                    #expect(answer == [.confirmed])
                    proxy.inject(Self.blocked("low on memory"))
                    try await eventually { publisher.state == .blocked(reason: "low on memory") }
                    let publishing = Task { try await publisher.publish([.to(queue, "second")]) }
                    try await eventually { publisher.state == .blocked(reason: "low on memory") }
                    #expect(try await RealBroker.status(queue)?.messages == 1)
                    proxy.inject(Self.unblocked)
                    #expect(try await publishing.value == [.confirmed])
                    #expect(publisher.state == .connected)
                }
            }
        }
    }

    /// Linux applies `TCP_USER_TIMEOUT` also to a live peer that does not read. During an alarm RabbitMQ does not read.
    @Test(arguments: [false, true])
    func `unacknowledged data breaks the connection after its limit, but not during an alarm`(_ isAlarm: Bool)
        async throws
    {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withProxy { proxy in
                var configuration = try RealBroker.configuration(through: proxy)
                configuration.timeouts.unsent = .seconds(2)
                // More than the receiver's buffer holds, and less than the sender's.
                let window = AMQPPublishWindow(messages: 500, bytes: 1_000_000)
                try await RealBroker.withPublisher(configuration, window: window) { publisher in
                    #expect(try await publisher.publish([.to(queue, "first")]) == [.confirmed])
                    // The frozen proxy does not read. The receiver's buffer fills, and the remainder waits in the
                    // sender's kernel.
                    proxy.freeze()
                    let body = String(repeating: "x", count: 4000)
                    let messages = (0..<200).map { AMQPMessage.to(queue, body, id: "\($0)") }
                    let publishing = Task { try await publisher.publish(messages) }
                    if isAlarm {
                        proxy.inject(Self.blocked("low on memory"))
                        let blocked = AMQPConnectionState.blocked(reason: "low on memory")
                        try await eventually("the alarm") { publisher.state == blocked }
                        let end = ContinuousClock.now + configuration.timeouts.unsent * 4
                        try await eventually("the end of the alarm, or of the connection") {
                            ContinuousClock.now > end || publisher.state != blocked
                        }
                        #expect(publisher.state == blocked)
                        proxy.resumeTraffic()
                        proxy.inject(Self.unblocked)
                    } else {
                        // Heartbeats would detect it after 40 s.
                        try await eventually("the loss of the connection", within: .seconds(15)) {
                            guard case .connecting(_, let error?) = publisher.state else { return false }
                            return error.code == .connectionLost
                        }
                        proxy.cut()
                        proxy.resumeTraffic()
                    }
                    #expect(try await publishing.value.allSatisfy { $0 == .confirmed })
                    let count = try await RealBroker.status(queue)?.messages
                    // Without a reconnect each message is published once.
                    #expect(isAlarm ? count == 201 && proxy.accepted == 1 : proxy.accepted > 1)
                }
            }
        }
    }

    /// The frame `connection.blocked` with this reason: class 10, method 60, channel 0.
    private static func blocked(_ reason: String) -> [UInt8] {
        let method = [0, 10, 0, 60, UInt8(reason.utf8.count)] + Array(reason.utf8)
        return [1, 0, 0, 0, 0, 0, UInt8(method.count)] + method + [0xCE]
    }

    /// The frame `connection.unblocked`.
    private static let unblocked: [UInt8] = [1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 61, 0xCE]
}
