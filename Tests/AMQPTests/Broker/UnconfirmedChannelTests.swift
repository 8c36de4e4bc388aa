import Testing
import TestSupport

@testable import AMQP

/// Channels that stop confirming.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct UnconfirmedChannelTests {
    @Test func `a channel whose publishes are only nacked is replaced`() async throws {
        let full: [String: AMQPValue] = [
            "x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish",
        ]
        try await RealBroker.withQueue(full) { queue in
            var configuration = try RealBroker.configuration()
            configuration.timeouts.confirms.nacked = .milliseconds(100)
            let logs = CapturingLogger()
            try await RealBroker.withPublisher(configuration, logger: logs.logger) { publisher in
                try await eventually {
                    _ = try await publisher.publish([.to(queue, "again")])
                    return logs.lines.contains {
                        "\($0.metadata["error"], default: "")".contains("only nacks messages to the exchange")
                    }
                }
                _ = try await RealBroker.drain(queue)
                try await eventually { try await publisher.publish([.to(queue, "after")]) == [.confirmed] }
            }
        }
    }

    @Test func `a message without a confirm is published again on a new channel`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withProxy { proxy in
                var configuration = try RealBroker.configuration(through: proxy)
                configuration.timeouts.confirms.unconfirmed = .milliseconds(200)
                configuration.timeouts.handshake = .milliseconds(500)
                let logs = CapturingLogger()
                try await RealBroker.withPublisher(configuration, logger: logs.logger) { publisher in
                    try await eventually { publisher.state == .connected }
                    proxy.holdResponses()
                    let publishing = Task { try await publisher.publish([.to(queue, "message")]) }
                    try await eventually {
                        logs.lines.contains { "\($0.metadata["error"], default: "")".contains("no confirm within") }
                    }
                    proxy.resumeTraffic()
                    #expect(try await publishing.value == [.confirmed])
                }
            }
        }
    }
}
