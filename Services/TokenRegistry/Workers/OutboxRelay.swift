import AMQP
import Logging
import Messaging
import Metrics
import PushProtocol
import ServiceConnections
import ServiceKit
import ServiceLifecycle

/// Publishes what the table announces, and forgets it once the broker has confirmed it. Any number of processes may run
/// it: one publishes at a time. Runs until graceful shutdown.
///
/// An event that no queue is bound to is told to nobody: who wants device events binds a queue, and hears of what happens
/// from then on.
struct OutboxRelay: Service {
    /// How often it looks when there was nothing to do.
    static let pace = Duration.milliseconds(500)
    /// Between looks at how long the oldest event has been waiting, in rounds.
    private static let roundsBetweenFigures = 20
    /// How long the broker has for a batch. Shorter than an idle transaction may last (`PostgresConfiguration`).
    static let patience = Duration.seconds(5)

    private let service: String
    private let store: OutboxStore
    private let bus: any MessageBus
    private let logger: Logger

    init(service: String, store: OutboxStore, bus: any MessageBus, logger: Logger) {
        self.service = service
        self.store = store
        self.bus = bus
        self.logger = logger
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var trouble = false
            var round = 0
            while !Task.isCancelled {
                do {
                    if round.isMultiple(of: Self.roundsBetweenFigures) { try await measure() }
                    round += 1
                    let isStuck = try await publishDue()
                    if trouble, !isStuck { logger.notice("Device events leave again") }
                    trouble = isStuck
                } catch {
                    if !trouble, !Task.isCancelled {
                        logger.warning(
                            "Device events cannot leave now; they wait", metadata: [LogKey.error: "\(error)"])
                    }
                    trouble = true
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
            }
        }
    }

    /// Publishes all that waits.
    ///
    /// - Returns: whether the broker refused some, which stay.
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
        for announcement in lent {
            do {
                let event = announcement.event
                messages.append(try Outbound(event, to: .devices, routingKey: event.routingKey).message(from: service))
                announcements.append(announcement)
            } catch {
                published.dead.append(.init(announcement, error.description))
            }
        }
        guard !messages.isEmpty else { return published }
        let (bus, outgoing) = (bus, messages)
        let answers = try await withThrowingTaskGroup(of: [AMQPConfirmation].self) { group in
            group.addTask { try await bus.publish(outgoing) }
            group.addTask {
                try await Task.sleep(for: Self.patience)
                throw Outage("the broker", underlying: TookTooLong())
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
        for (announcement, answer) in zip(announcements, answers) {
            switch answer {
            case .confirmed: count(announcement.event, heard: true)
            // 312 NO_ROUTE: there is the exchange, and nobody listens.
            case .returned(312, _): count(announcement.event, heard: false)
            case .nacked: continue
            case .returned(let code, let text) where answer.isPermanentRefusal:
                published.dead.append(.init(announcement, "\(code) \(text)"))
                continue
            case .returned(let code, let text):
                logger.error(
                    "A device event is refused and published again: apply the topology, or check its permissions",
                    metadata: [LogKey.routingKey: "\(announcement.event.routingKey)", LogKey.reason: "\(code) \(text)"])
                continue
            }
            published.numbers.append(announcement.number)
        }
        return published
    }

    /// Measures before it publishes, so that the gauge shows only waits from before this round. Sets aside rows that no
    /// newer process came for.
    func measure() async throws {
        report(try await store.buryUnknown())
        let wait = try await store.wait() ?? .zero
        Gauge(label: "heliograph_registry_events_waiting_seconds").record(wait / .seconds(1))
    }

    private struct TookTooLong: Error, CustomStringConvertible {
        let description = "it did not confirm within \(OutboxRelay.patience)"
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_registry_events_waiting_seconds` | gauge | | for how long the oldest device event has been waiting |
    /// | `heliograph_registry_events_total` | counter | event, heard | device events that left; `heard` is no where no queue is bound |
    private func count(_ event: DeviceEvent, heard: Bool) {
        Counter(
            label: "heliograph_registry_events_total",
            dimensions: [("event", event.change.rawValue), ("heard", heard ? "yes" : "no")]
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
