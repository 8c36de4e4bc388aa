import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Publishes delivery reports for upstreams, on the exchange `notifications` with the routing key
/// `event.reported.<app>`.
///
/// Goes to the queue of the app's upstream, to webhooks, and to queues that others bind. A report has the complete delivery state; a later report replaces it. Any number of
/// processes may run it. Runs until graceful shutdown.
struct DeliveryReportWorker: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(500)

    let service: String
    let store: ReportStore
    let bus: any MessageBus
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot publish delivery reports; retrying",
            recoveryMessage: "Publishing delivery reports again", logger: logger
        ).run { try await report() }
    }

    private func metadata(of report: DeliveryReport, _ reason: String) -> Logger.Metadata {
        [
            LogKey.app: "\(report.app)", LogKey.correlation: "\(report.event)",
            LogKey.notification: "\(Hexadecimal.text(of: report.notification))", LogKey.reason: "\(reason)",
        ]
    }

    /// Publishes all reports that are due.
    func report() async throws {
        while true {
            let now = try await now()
            let taken = try await store.take(now: now)
            guard !taken.isEmpty else { return }
            var reports: [DeliveryReport] = []
            var messages: [AMQPMessage] = []
            for report in taken {
                do throws(WireError) {
                    messages.append(
                        try report.event(at: now).message(of: report.app, correlation: report.event, from: service))
                    reports.append(report)
                } catch {
                    try await store.markDead(report)
                }
            }
            var told: [DeliveryReport] = []
            for (report, answer) in zip(reports, try await bus.publish(messages)) {
                switch answer {
                case .confirmed: count(report, isQueueBound: true)
                // 312 NO_ROUTE: the exchange exists, and no queue is bound.
                case .returned(312, _): count(report, isQueueBound: false)
                // Published again when its lease ends.
                case .nacked: continue
                case .returned(let code, let text) where answer.isPermanentRefusal:
                    logger.error(
                        "Broker permanently refuses a delivery report; marking its row as dead",
                        metadata: metadata(of: report, "\(code) \(text)"))
                    try await store.markDead(report)
                    continue
                case .returned(let code, let text):
                    logger.error(
                        "Broker refuses a delivery report; retrying. Apply the topology, or check permissions",
                        metadata: metadata(of: report, "\(code) \(text)"))
                    continue
                }
                told.append(report)
            }
            try await store.told(told)
            guard taken.count == ReportStore.batch, !Task.isCancelled else { return }
        }
    }

    private func count(_ report: DeliveryReport, isQueueBound: Bool) {
        Counter(
            label: "heliograph_rules_reports_total",
            dimensions: [("app", report.app.rawValue), ("heard", isQueueBound ? "yes" : "no")]
        ).increment()
    }
}
