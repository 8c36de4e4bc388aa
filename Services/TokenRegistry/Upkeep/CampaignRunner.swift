import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Works off campaigns: takes a cursor, reads the next of its audience, and has the broker replace the cursor by the one
/// behind them together with their pushes, in one transaction. A process that dies in between has done nothing, and
/// another goes on. Any number of processes may run it. Runs until graceful shutdown.
struct CampaignRunner: Service {
    /// How many steps are made at once: one reads while another waits for the broker.
    static let workers = 2
    /// How often it looks when there is nothing to do.
    static let pace = Duration.milliseconds(250)
    /// While a sender's queue holds more messages than this, nothing is added to it.
    static let backlog = 10_000

    private let queue = WorkQueue.registryCampaigns.name
    private let steps: CampaignSteps
    private let amqp: AMQPConfiguration
    private let bus: any MessageBus
    private let service: String
    private let courtesy: Courtesy
    private let logger: Logger

    init(
        service: String, store: CampaignStore, amqp: AMQPConfiguration, bus: any MessageBus, courtesy: Courtesy,
        fids: @escaping @Sendable () -> FIDPreference = { FIDPreference() }, logger: Logger
    ) {
        self.service = service
        self.amqp = amqp
        self.bus = bus
        self.courtesy = courtesy
        self.logger = logger
        steps = CampaignSteps(store: store, fids: fids)
    }

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<Self.workers { group.addTask { try await work() } }
                try await group.waitForAll()
            }
        }
    }

    /// - Throws: when the system has no descriptor or thread left.
    private func work() async throws(AMQPError) {
        let transactor = try AMQPTransactor(amqp, logger: logger)
        var failures = 0
        while !Task.isCancelled {
            let pause: Duration
            do {
                let begun = ContinuousClock.now
                pause = try await advance(on: transactor) ? courtesy.rest(after: .now - begun) : Self.pace
                if failures > 0 { logger.notice("Campaigns go on") }
                failures = 0
            } catch {
                // What was taken goes back to its queue.
                await transactor.close()
                failures += 1
                if failures == 1, !Task.isCancelled {
                    logger.warning("Campaigns cannot go on now; they wait", metadata: [LogKey.error: "\(error)"])
                }
                pause = Backoff(base: .seconds(1), cap: .seconds(60)).delay(afterFailures: failures)
            }
            // Cancelled: shutting down.
            if pause > .zero { try? await Task.sleep(for: pause) }
        }
        await transactor.close()
    }

    /// Takes one cursor and does what is to be done about it.
    ///
    /// - Returns: whether there was one.
    func advance(on transactor: AMQPTransactor) async throws -> Bool {
        guard let delivery = try await transactor.take(from: queue) else { return false }
        let cursor: CampaignCursor
        do {
            guard delivery.isCursor else { throw WireError.misrouted("is not that of a campaign's cursor") }
            cursor = try CampaignCursor.decode(wireBody: delivery.body)
        } catch {
            logger.error("This is no campaign's cursor; it is set aside", metadata: [LogKey.error: "\(error)"])
            try await settle([delivery.copy(to: .dead, for: queue)], delivery, on: transactor)
            return true
        }
        switch try await verdict(on: cursor, redelivered: delivery.redelivered, transactor) {
        case .void: try await settle([], delivery, on: transactor)
        case .later: try await postpone(delivery, on: transactor)
        case .wait: try await yield(cursor, delivery, on: transactor)
        case .finished:
            logger.notice("A campaign is done", metadata: cursor.metadata)
            try await settle([], delivery, on: transactor)
        case .expired:
            logger.notice("A campaign has expired", metadata: cursor.metadata)
            try await settle([], delivery, on: transactor)
        case .step(let step):
            guard try await hasRoom(for: step, on: transactor) else {
                // Lost, it costs a rate a moment; so does what is given back below.
                try? await steps.giveBack(step, telling: 0, of: cursor)
                try await yield(cursor, delivery, on: transactor)
                return true
            }
            try await settle(step.messages(from: service), delivery, on: transactor)
            count(step, of: cursor)
            try? await steps.giveBack(step, telling: step.tally.devices, of: cursor)
        }
        return true
    }

    /// What is to be done, after waiting for a campaign's rate where that is not long.
    private func verdict(
        on cursor: CampaignCursor, redelivered: Bool, _ transactor: AMQPTransactor
    ) async throws -> CampaignSteps.Verdict {
        var isOurs = redelivered
        while true {
            let (held, size) = (isOurs, courtesy.step(of: CampaignSteps.usualSize, orOnly: CampaignSteps.smallSize))
            let verdict = try await patiently(on: transactor) {
                try await steps.next(cursor, redelivered: held, size: size)
            }
            guard case .wait(let wait) = verdict, wait <= .seconds(2) else { return verdict }
            try await Task.sleep(for: wait)
            isOurs = true
        }
    }

    /// Holds on to a cursor while the database is away.
    private func patiently<R: Sendable>(
        on transactor: AMQPTransactor, _ body: @Sendable () async throws -> R
    ) async throws -> R {
        var isAway = false
        while true {
            do {
                let result = try await Outage.ofDatabase { try await body() }
                if isAway { logger.notice("The database is back; campaigns go on") }
                return result
            } catch let outage as Outage {
                if !isAway {
                    logger.warning("Campaigns wait for the database", metadata: [LogKey.error: "\(outage.underlying)"])
                }
                isAway = true
                try await transactor.tick()
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// Whether the queues that a step publishes to are there and not too long.
    private func hasRoom(for step: CampaignSteps.Step, on transactor: AMQPTransactor) async throws -> Bool {
        for queue in step.queues {
            guard let depth = try await transactor.depth(of: queue) else {
                logger.error("A campaign waits for a queue: apply the topology", metadata: ["queue": "\(queue)"])
                return false
            }
            if depth > Self.backlog { return false }
        }
        return true
    }

    /// Puts a cursor where it comes back from in a while.
    private func postpone(_ delivery: AMQPDelivery, on transactor: AMQPTransactor) async throws {
        try await settle([delivery.copy(to: .retry(.seconds5), for: queue)], delivery, on: transactor)
    }

    /// The same, of a cursor that was this process's turn.
    private func yield(_ cursor: CampaignCursor, _ delivery: AMQPDelivery, on transactor: AMQPTransactor) async throws {
        try await patiently(on: transactor) { try await steps.yield(cursor) }
        try await postpone(delivery, on: transactor)
    }

    /// Settles, with all that is published because of it. What reached no queue all the same, since it was deleted in this
    /// moment, is published again until it does.
    private func settle(
        _ messages: [AMQPMessage], _ delivery: AMQPDelivery, on transactor: AMQPTransactor
    ) async throws {
        let returned = Set(try await transactor.commit(messages, settling: delivery))
        guard !returned.isEmpty else { return }
        var left = messages.filter { returned.contains($0.properties.messageID ?? "") }
        logger.error(
            "The broker has no queue for a part of a campaign: apply the topology",
            metadata: ["messages": "\(left.count)"])
        while !left.isEmpty {
            let answers = try await bus.publish(left)
            left = zip(left, answers).filter { $1 != .confirmed }.map(\.0)
            if !left.isEmpty { try await Task.sleep(for: .seconds(1)) }
        }
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_registry_campaign_devices_total` | counter | app | devices that a campaign's push is on its way to |
    /// | `heliograph_registry_campaign_pushes_total` | counter | app | the messages that these pushes are in |
    /// | `heliograph_registry_campaign_without_total` | counter | app | users of an audience without a device |
    private func count(_ step: CampaignSteps.Step, of cursor: CampaignCursor) {
        let dimensions = [("app", cursor.app.rawValue)]
        for (name, count) in [
            ("devices", step.tally.devices), ("pushes", step.tally.pushes), ("without", step.tally.without),
        ] {
            Counter(label: "heliograph_registry_campaign_\(name)_total", dimensions: dimensions).increment(by: count)
        }
    }
}

extension CampaignCursor {
    fileprivate var metadata: Logger.Metadata { ["campaign": "\(campaign)", "app": "\(app)"] }
}

extension AMQPDelivery {
    /// Whether the registry itself published it: at first, or as a retry. Other publishers hold no right to these keys.
    fileprivate var isCursor: Bool {
        exchange == ExchangeName.return.name
            ? routingKey == WorkQueue.registryCampaigns.name : routingKey == RoutingKey.campaignCursor
    }

    /// The same message, on its way to another exchange.
    fileprivate func copy(to exchange: ExchangeName, for routingKey: String) -> AMQPMessage {
        var copy = AMQPMessage(exchange: exchange.name, routingKey: routingKey, properties: properties, body: body)
        // What the broker wrote would work against it (`messaging-and-data` 1.4).
        copy.properties.headers = [:]
        copy.properties.expiration = nil
        return copy
    }
}
