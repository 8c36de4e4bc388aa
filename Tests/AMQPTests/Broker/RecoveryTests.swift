import Foundation
import Logging
import Testing
import TestSupport

@testable import AMQP

/// Connection losses and broker restarts, simulated with a proxy.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct RecoveryTests {
    @Test func `repeated connection losses while publishing cause no loss and at most one window of duplicates each`()
        async throws
    {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withProxy { proxy in
                let (cuts, window) = (5, 50)
                try await RealBroker.withPublisher(
                    RealBroker.configuration(through: proxy), window: .init(messages: window, bytes: 256 * 1024)
                ) { publisher in
                    let publishing = Task { try await publisher.publish((0..<4000).map { .to(queue, "\($0)") }) }
                    for cut in 1...cuts {
                        try await eventually { try await RealBroker.status(queue)?.messages ?? 0 > cut * 100 }
                        proxy.cut()
                    }
                    #expect(try await publishing.value == Array(repeating: .confirmed, count: 4000))
                }
                let texts = try await RealBroker.drain(queue).map(\.text)
                #expect(Set(texts).count == 4000)
                #expect(texts.count <= 4000 + cuts * window)
            }
        }
    }

    @Test func `messages with lost confirms are published again with the same id`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withProxy { proxy in
                try await RealBroker.withPublisher(RealBroker.configuration(through: proxy)) { publisher in
                    try await eventually { publisher.state == .connected }
                    proxy.holdResponses()
                    let publishing = Task { try await publisher.publish((0..<10).map { .to(queue, "\($0)") }) }
                    try await eventually { try await RealBroker.status(queue)?.messages == 10 }
                    proxy.cut()
                    proxy.resumeTraffic()
                    #expect(try await publishing.value == Array(repeating: .confirmed, count: 10))
                }
                let ids = try await RealBroker.drain(queue).map(\.properties.messageID)
                #expect(ids == (0..<10).map { "\($0)" } + (0..<10).map { "\($0)" })
            }
        }
    }

    @Test func `after a reconnect old acknowledgements are dropped and messages are redelivered`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                _ = try await publisher.publish((0..<20).map { .to(queue, "\($0)") })
            }
            try await RealBroker.withProxy { proxy in
                try await RealBroker.withConsumer(RealBroker.configuration(through: proxy)) { consumer in
                    let subscription = consumer.subscribe(queue: queue, prefetch: 20)
                    var old: [AMQPDelivery] = []
                    for await burst in subscription.deliveries {
                        old += burst
                        if old.count == 20 { break }
                    }
                    proxy.cut()
                    try await eventually { proxy.accepted == 2 && subscription.state == .active }
                    consumer.acknowledge(old.map(\.tag))
                    var new: [AMQPDelivery] = []
                    for await burst in subscription.deliveries {
                        new += burst
                        if new.count == 20 { break }
                    }
                    #expect(Set(new.map(\.text)) == Set(old.map(\.text)))
                    #expect(new.allSatisfy { $0.redelivered && $0.tag.generation == 2 })
                    try await eventually { consumer.staleSettlements == 20 }
                    consumer.acknowledge(new.map(\.tag))
                    await subscription.cancel()
                }
            }
            try await eventually { try await RealBroker.isEmpty(queue) }
        }
    }

    @Test func `buffered deliveries do not accumulate over reconnects`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                _ = try await publisher.publish((0..<10).map { .to(queue, "\($0)") })
            }
            try await RealBroker.withProxy { proxy in
                try await RealBroker.withConsumer(RealBroker.configuration(through: proxy)) { consumer in
                    let subscription = consumer.subscribe(queue: queue, prefetch: 10)
                    for round in 1...4 {
                        try await eventually { proxy.accepted == round && subscription.state == .active }
                        proxy.cut()
                    }
                    var taken: [AMQPDelivery] = []
                    for await burst in subscription.deliveries {
                        taken += burst.filter { $0.tag.generation == 5 }
                        if taken.count == 10 { break }
                    }
                    #expect(taken.count == 10)
                    consumer.acknowledge(taken.map(\.tag))
                }
            }
        }
    }

    @Test func `the next host is tried when the first is unreachable`() async throws {
        let port = URLComponents(string: try RealBroker.url())?.port ?? 5672
        let url = try RealBroker.url().replacingOccurrences(of: ":\(port)", with: ":1,127.0.0.1:\(port)")
        let configuration = try AMQPConfiguration(url: url, connectionName: "amqp-tests")
        try await RealBroker.withPublisher(configuration) { publisher in
            try await eventually { publisher.state == .connected }
        }
    }

    @Test(arguments: ["amqp", "amqps"])
    func `a refused connection reports the system's error`(scheme: String) async throws {
        let port = try FreePort.any()
        let configuration = try AMQPConfiguration(
            url: "\(scheme)://u:p@localhost:\(port)", connectionName: "amqp-tests")
        let error = await #expect(throws: AMQPError.self) {
            try await AMQPAdministrator.with(configuration, logger: RealBroker.logger) { _ in }
        }
        #expect(error?.code == .unreachable)
        #expect(error.map { "\($0)" } == "connect to localhost:\(port): Connection refused")
    }

    @Test func `refused credentials are reported and retried slowly, without the password in any log`() async throws {
        let url = try RealBroker.url().replacing(/:[^:@]+@/, with: ":wrong-secret@")
        let logs = CapturingLogger()
        var configuration = try AMQPConfiguration(url: url, connectionName: "amqp-tests")
        configuration.random = { 0 }
        try await RealBroker.withPublisher(configuration, logger: logs.logger) { publisher in
            try await eventually {
                guard case .connecting(_, let error?) = publisher.state else { return false }
                return error.code == .refused(replyCode: 403) && !"\(error)".contains("secret")
            }
        }
        let refusals = logs.lines.filter { $0.level == .error }
        #expect((1...3).contains(refusals.count))
        #expect(logs.lines.allSatisfy { !"\($0)".contains("wrong-secret") })
    }

    @Test func `a closed connection is reopened`() async throws {
        let name = RealBroker.name("connection")
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher(RealBroker.configuration(name: name)) { publisher in
                try await eventually { publisher.state == .connected }
                let list = try await TestBroker.control("list_connections", "pid", "client_properties")
                let pid = try #require(
                    list.split(separator: "\n").first { $0.contains("\(name) out") }?.split(separator: "\t").first)
                try await TestBroker.control("close_connection", String(pid), "test")
                let answer = try await publisher.publish([.to(queue, "after")])
                #expect(answer == [.confirmed])
            }
        }
    }
}
