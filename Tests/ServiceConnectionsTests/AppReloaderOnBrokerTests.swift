import AMQP
import Messaging
import PushProtocol
import ServiceConnections
import ServiceKit
import Synchronization
import Testing
import TestSupport

/// A new app on a running service, on a real broker.
@Suite(.timeLimit(.minutes(2))) struct AppReloaderOnBrokerTests {
    /// Records the events of each queue.
    private final class Recorder: StageHandler {
        let queues = Mutex<[WorkQueue]>([])

        func decode(_ inbound: Inbound) throws(WireError) -> WorkQueue { inbound.queue }

        func handle(_ batch: [Delivery<WorkQueue>]) async throws -> [Verdict] {
            queues.withLock { $0 += batch.map(\.message) }
            return batch.map { _ in .done }
        }
    }

    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `a new app waits for its queues, and is then consumed by the running stage`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("apps.yaml", "apps:\n  one:\n")
        let late = try #require(AppID(rawValue: "late"))
        try await TestBroker.withVirtualHost { url in
            let test = try TestContext(.process + .amqp + .apps, ["AMQP_URL": url, "HELIOGRAPH_APPS": path])
            func apply(_ apps: [AppID]) async throws {
                try await AMQPAdministrator.with(test.context.amqp(), logger: test.context.logger) {
                    try await Topology(apps: apps).apply(using: $0)
                }
            }
            let catalog = try test.context.apps(using: .all)
            try await apply(catalog.ids)
            let queues = WorkQueue.events(of: catalog.ids)
            let bus = try test.context.bus(queues: queues, publishingTo: [.notifications], apps: catalog.ids)
            let recorder = Recorder()
            let stage = try test.context.stage(queues: queues, on: bus, handler: recorder)
            let reloader = try test.context.appReloader(
                catalog, using: .all, consuming: { [.rulesAppEvents($0.id)] }, publishingTo: [.notifications]
            ) { _, queues in
                for queue in queues { stage.consume(queue) }
            }
            try await test.running(bus.services + [stage, reloader]) {
                try await eventually("readiness", within: .seconds(30)) { test.readiness.report.isReady }
                try folder.write("apps.yaml", "apps:\n  one:\n  late:\n")
                try await eventually("the missing queue", within: .seconds(30)) {
                    guard case .degraded(let reason)? = test.state("apps") else { return false }
                    return reason.contains(".late") && reason.contains("pushctl topology apply")
                }
                #expect(test.readiness.report.isReady && stage.status.count == queues.count)
                try await apply(catalog.ids + [late])
                try await eventually("the new app", within: .seconds(30)) { test.state("apps") == .holds }
                _ = try await bus.publisher.publish([
                    AMQPMessage(exchange: "events", routingKey: "late.some.event", body: Array("{}".utf8))
                ])
                try await eventually("the event", within: .seconds(30)) {
                    recorder.queues.withLock { $0 } == [.rulesAppEvents(late)]
                }
                #expect(test.readiness.report.isReady)
            }
        }
    }
}
