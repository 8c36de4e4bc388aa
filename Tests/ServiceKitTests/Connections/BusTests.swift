import AMQP
import Logging
import Messaging
import PushProtocol
import ServiceKit
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct BusTests {
    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `the bus is ready once it is connected and its topology is there`() async throws {
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
    func `who publishes for an app is not ready while that app's queues are missing`() async throws {
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

    @Test func `a broker that is away keeps the service waiting, and stopping is still quick`() async throws {
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

    @Test func `an address that cannot be used is refused with its key and without its password`() throws {
        let test = try TestContext(.amqp, ["AMQP_URL": "amqp://sample:hunter2@host:99999/x"])
        let error = #expect(throws: ConfigurationError.self) { try test.context.amqp() }
        #expect(error?.problems.first?.hasPrefix("AMQP_URL: ") == true)
        #expect(error?.problems.first?.contains("hunter2") == false)
    }
}
