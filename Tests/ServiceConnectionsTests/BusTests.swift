import AMQP
import Logging
import Messaging
import PushProtocol
import ServiceConnections
import ServiceKit
import Synchronization
import Testing
import TestSupport

@Suite(.timeLimit(.minutes(2))) struct BusTests {
    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `the bus is ready once it is connected and its topology exists`() async throws {
        try await TestBroker.withVirtualHost { url in
            let test = try TestContext(.amqp, ["AMQP_URL": url])
            let bus = try test.context.bus(queues: [.feedbackOutcomes], publishingTo: [.devices])
            try await test.running(bus.services) {
                try await eventually("the connections", within: .seconds(30)) {
                    test.state("broker-in") == .holds && test.state("broker-out") == .holds
                }
                let names = try await TestBroker.control("list_connections", "client_properties")
                #expect(names.contains("sample test in") && names.contains("sample test out"))
                #expect(!names.contains("sample test in in") && !names.contains("sample test out out"))
                try await eventually("the missing topology", within: .seconds(30)) {
                    test.reason("topology")?.contains("missing") == true
                }
                #expect(test.reason("topology")?.contains("pushctl topology apply") == true)
                try await AMQPAdministrator.with(test.context.amqp(), logger: test.context.logger) {
                    try await Topology(apps: []).apply(using: $0)
                }
                try await eventually("readiness", within: .seconds(30)) { test.readiness.report.isReady }
            }
        }
    }

    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `a publisher for an app is not ready while the app's queues are missing`() async throws {
        try await TestBroker.withVirtualHost { url in
            let test = try TestContext(.amqp, ["AMQP_URL": url])
            let app = try #require(AppID(rawValue: "late"))
            let bus = try test.context.bus(queues: [.registryDevices], publishingTo: [.pushes], apps: [app])
            func apply(_ apps: [AppID]) async throws {
                try await AMQPAdministrator.with(test.context.amqp(), logger: test.context.logger) {
                    try await Topology(apps: apps).apply(using: $0)
                }
            }
            try await apply([])
            try await test.running(bus.services) {
                try await eventually("the missing queues", within: .seconds(30)) {
                    test.reason("topology")?.contains("sender.pushes.") == true
                }
                try await apply([app])
                try await eventually("readiness", within: .seconds(30)) { test.readiness.report.isReady }
            }
        }
    }

    @Test func `an unreachable broker keeps the service unready, and shutdown stays quick`() async throws {
        let test = try TestContext(.amqp, ["AMQP_URL": "amqp://sample:hunter2@127.0.0.1:1/x"])
        let bus = try test.context.bus(queues: [.rulesEvents])
        try await test.running(bus.services) {
            for condition in ["broker-in", "broker-out", "topology"] {
                try await eventually(condition, within: .seconds(30)) {
                    test.reason(condition)?.contains("127.0.0.1") == true
                }
                #expect(test.reason(condition)?.contains("hunter2") == false)
            }
        }
    }

    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `a stage requeues unfinished messages before the shutdown deadline`() async throws {
        try await TestBroker.withVirtualHost { url in
            let test = try TestContext(.process + .amqp, ["AMQP_URL": url, "HELIOGRAPH_SHUTDOWN_DEADLINE": "1s"])
            try await AMQPAdministrator.with(test.context.amqp(), logger: test.context.logger) {
                try await Topology(apps: []).apply(using: $0)
            }
            let queue = WorkQueue.feedbackErasures
            let host = try #require(url.split(separator: "/").last.map(String.init))
            let bus = try test.context.bus(queues: [queue])
            let handler = Stuck()
            let stage = try test.context.stage(queues: [queue], on: bus, handler: handler)
            var begin = ContinuousClock.now
            try await test.running(bus.services + [stage]) {
                _ = try await bus.publisher.publish([AMQPMessage(exchange: "", routingKey: queue.name, body: [])])
                try await eventually("the stuck batch", within: .seconds(30)) { handler.hasBegun }
                begin = .now
            }
            #expect(begin.duration(to: .now) < .seconds(10))
            try await eventually("the message", within: .seconds(30)) {
                try await TestBroker.control("list_queues", "-p", host, "name", "messages_ready")
                    .contains("\(queue.name)\t1\n")
            }
        }
    }

    @Test func `an invalid URL is rejected with its key and without its password`() throws {
        let test = try TestContext(.amqp, ["AMQP_URL": "amqp://sample:hunter2@host:99999/x"])
        let error = #expect(throws: ConfigurationError.self) { try test.context.amqp() }
        #expect(error?.problems.first?.hasPrefix("AMQP_URL: ") == true)
        #expect(error?.problems.first?.contains("hunter2") == false)
    }
}

/// A handler that finishes only when cancelled.
private final class Stuck: StageHandler {
    private let begun = Atomic(false)

    var hasBegun: Bool { begun.load(ordering: .relaxed) }

    func decode(_ inbound: Inbound) throws(WireError) -> [UInt8] { inbound.body }

    func handle(_ batch: [Delivery<[UInt8]>]) async throws -> [Verdict] {
        begun.store(true, ordering: .relaxed)
        // The sleep ends by cancellation.
        try await Task.sleep(for: .seconds(3600))
        return batch.map { _ in .done }
    }
}
