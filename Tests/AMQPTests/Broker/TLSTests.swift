import Foundation
import Testing
import TestSupport

@testable import AMQP

@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct TLSTests {
    private static func configuration(
        _ relay: TLSRelay, host: String = "localhost", caFile: String?
    ) throws -> AMQPConfiguration {
        var components = URLComponents(string: try RealBroker.url())
        components?.scheme = "amqps"
        components?.host = host
        components?.port = relay.port
        return try AMQPConfiguration(url: components?.string ?? "", connectionName: "amqp-tests", caFile: caFile)
    }

    private static func with(
        _ certificates: TestCertificates, _ body: (TLSRelay) async throws -> Void
    ) async throws {
        let port = URLComponents(string: try RealBroker.url())?.port ?? 5672
        try await TLSRelay.with(certificates, target: port, body)
    }

    private static func refusal(_ configuration: AMQPConfiguration) async -> AMQPError? {
        let error = await #expect(throws: AMQPError.self) {
            try await AMQPAdministrator.with(configuration, logger: RealBroker.logger) { _ in }
        }
        return error
    }

    @Test func `messages larger than a TLS record are published and delivered`() async throws {
        let certificates = try TestCertificates.shared()
        try await Self.with(certificates) { relay in
            let configuration = try Self.configuration(relay, caFile: certificates.authorityFile)
            try await RealBroker.withQueue { queue in
                let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
                let message = AMQPMessage(exchange: "", routingKey: queue, body: body)
                try await RealBroker.withPublisher(configuration) { publisher in
                    let answer = try await publisher.publish(Array(repeating: message, count: 20))
                    #expect(answer == Array(repeating: .confirmed, count: 20))
                }
                try await RealBroker.withConsumer(configuration) { consumer in
                    let subscription = consumer.subscribe(queue: queue, prefetch: 20)
                    var taken: [AMQPDelivery] = []
                    for await burst in subscription.deliveries {
                        taken += burst
                        if taken.count == 20 { break }
                    }
                    #expect(taken.allSatisfy { $0.body == body })
                    consumer.acknowledge(taken.map(\.tag))
                }
            }
        }
    }

    @Test func `a certificate of an unknown authority is refused`() async throws {
        try await Self.with(TestCertificates.shared()) { relay in
            let error = await Self.refusal(try Self.configuration(relay, caFile: nil))
            #expect(error?.code == .tls)
        }
    }

    @Test func `a certificate for another name is refused`() async throws {
        let certificates = try TestCertificates(hosts: ["broker.invalid"])
        defer { #expect(throws: Never.self) { try certificates.remove() } }
        try await Self.with(certificates) { relay in
            let error = await Self.refusal(try Self.configuration(relay, caFile: certificates.authorityFile))
            #expect(error?.code == .tls)
        }
    }

    @Test func `another authority's certificate is refused`() async throws {
        let other = try TestCertificates(hosts: ["localhost"])
        defer { #expect(throws: Never.self) { try other.remove() } }
        try await Self.with(TestCertificates.shared()) { relay in
            let error = await Self.refusal(try Self.configuration(relay, caFile: other.authorityFile))
            #expect(error?.code == .tls)
        }
    }

    @Test func `an unreadable authority file is named in the error`() async throws {
        try await Self.with(TestCertificates.shared()) { relay in
            let error = await Self.refusal(try Self.configuration(relay, caFile: "/nowhere/ca.pem"))
            #expect(error?.detail.contains("/nowhere/ca.pem") == true)
        }
    }

    @Test func `a broker without TLS is an error`() async throws {
        var components = URLComponents(string: try RealBroker.url())
        components?.scheme = "amqps"
        let configuration = try AMQPConfiguration(url: components?.string ?? "", connectionName: "amqp-tests")
        #expect(await Self.refusal(configuration)?.code == .tls)
    }
}
