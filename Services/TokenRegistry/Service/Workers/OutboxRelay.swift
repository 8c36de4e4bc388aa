import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import RegistryStore
import ServiceConnections
import ServiceKit
import ServiceLifecycle

/// Publishes device events from the outbox and deletes them once confirmed. Any number of processes may run it; one
/// publishes at a time. Runs until graceful shutdown.
///
/// An event without a bound queue is dropped. A consumer gets the events published after it has bound a queue.
/// The upstream of an app that asks for reports also gets a report of each dead device.
struct OutboxRelay: Service {
    static let pace = Duration.milliseconds(500)
    /// Rounds between two measurements of the oldest event's age.
    private static let roundsBetweenFigures = 20
    /// Maximum time for the confirms of a batch. Shorter than the limit of an idle transaction
    /// (`PostgresConfiguration`).
    static let patience = Duration.seconds(5)

    let service: String
    let store: OutboxStore
    let bus: any MessageBus
    /// Whether an app's upstream asks for reports of dead devices.
    var isReported: @Sendable (AppID) -> Bool = { _ in false }
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var trouble = false
            var round = 0
            while !Task.isCancelled {
                do {
                    if round.isMultiple(of: Self.roundsBetweenFigures) { try await measure() }
                    round += 1
                    let isStuck = try await publishDue()
                    if trouble, !isStuck { logger.notice("Publishing device events again") }
                    trouble = isStuck
                } catch {
                    if !trouble, !Task.isCancelled {
                        logger.warning(
                            "Cannot publish device events; retrying", metadata: [LogKey.error: "\(error)"])
                    }
                    trouble = true
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
            }
        }
    }

    /// Publishes all waiting events.
    ///
    /// - Returns: whether the broker refused some. These stay in the outbox.
    func publishDue() async throws -> Bool {
        while let drained = try await store.drain(publish: publish) {
            report(drained.dead)
            if drained.settled < drained.lent { return true }
            if drained.lent < OutboxStore.batch { return false }
        }
        return false
    }

    private func report(_ dead: [OutboxStore.DeadRow]) {
        for row in dead {
            DeadRows.report(
                "\(row.number)", of: row.app, in: "registry.outbox", because: row.reason, detail: row.detail,
                logger: logger)
        }
    }

    private func publish(_ lent: [Announcement]) async throws -> OutboxStore.Published {
        var published = OutboxStore.Published()
        var announcements: [Announcement] = []
        var messages: [AMQPMessage] = []
        var reports: [Int64: AMQPMessage] = [:]
        for announcement in lent {
            do {
                let event = announcement.event
                let message = try Outbound(event, to: .devices, routingKey: event.routingKey).message(from: service)
                reports[announcement.number] = try report(event)
                messages.append(message)
                announcements.append(announcement)
            } catch {
                published.dead.append(.init(announcement, error.description))
            }
        }
        guard !messages.isEmpty else { return published }
        let reported = announcements.compactMap { reports[$0.number] == nil ? nil : $0.number }
        let all = try await confirmations(of: messages + reported.compactMap { reports[$0] })
        let (answers, reportAnswers) = (all.prefix(messages.count), all.dropFirst(messages.count))
        // Published again with their events.
        let unreported = Set(zip(reported, reportAnswers).filter { !$1.isFinal }.map(\.0))
        for (announcement, answer) in zip(announcements, answers) where !unreported.contains(announcement.number) {
            switch answer {
            case .confirmed: count(announcement.event, isQueueBound: true)
            // 312 NO_ROUTE: the exchange exists, but no queue is bound.
            case .returned(312, _): count(announcement.event, isQueueBound: false)
            case .nacked: continue
            case .returned(let code, let text) where answer.isPermanentRefusal:
                published.dead.append(.init(announcement, "\(code) \(text)"))
                continue
            case .returned(let code, let text):
                logger.error(
                    "Broker refuses a device event; retrying. Apply the topology or check permissions",
                    metadata: announcement.event.logMetadata.merging([
                        LogKey.routingKey: "\(announcement.event.routingKey)", LogKey.reason: "\(code) \(text)",
                    ]) { $1 })
                continue
            }
            published.numbers.append(announcement.number)
        }
        return published
    }

    /// The report of a dead device, for an upstream that asks for it.
    private func report(_ event: DeviceEvent) throws(WireError) -> AMQPMessage? {
        guard let report = ReportEvent(event), isReported(event.app) else { return nil }
        return try report.message(of: event.app, correlation: event.trace.correlation, from: service)
    }

    private func confirmations(of messages: [AMQPMessage]) async throws -> [AMQPConfirmation] {
        guard let answers = try await bus.publish(messages, within: Self.patience) else {
            throw Outage("the broker", underlying: TookTooLong())
        }
        return answers
    }

    /// Measures the waiting time before publishing, so that it covers earlier rounds only. Sets aside rows of an
    /// unknown kind that no newer process has published.
    func measure() async throws {
        report(try await store.setAsideUnknown())
        let wait = try await store.wait() ?? .zero
        Gauge(label: "heliograph_registry_events_waiting_seconds").record(wait / .seconds(1))
    }

    private struct TookTooLong: Error, CustomStringConvertible {
        let description = "no confirm within \(OutboxRelay.patience)"
    }

    private func count(_ event: DeviceEvent, isQueueBound: Bool) {
        Counter(
            label: "heliograph_registry_events_total",
            dimensions: [("event", event.change.rawValue), ("heard", isQueueBound ? "yes" : "no")]
        ).increment()
    }
}

extension OutboxStore.DeadRow {
    fileprivate init(_ announcement: Announcement, _ detail: String) {
        self.init(
            number: announcement.number, app: announcement.event.app.rawValue, reason: ReasonCode.rowUnpublishable,
            detail: detail)
    }
}
