import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import Postgres
import PushProtocol
import RegistryStore
import ServiceConnections
import ServiceKit
import ServiceLifecycle

/// Runs campaigns until graceful shutdown. A step takes a cursor and reads the next part of its audience. It publishes
/// the pushes, then the next cursor, and then acknowledges its own cursor. Each publish waits for confirms (decision
/// 89).
///
/// If a process stops within a step, the cursor returns to the queue, and another process repeats the step with the
/// same ids. Any number of processes may run campaigns.
struct CampaignRunner: Service {
    /// Cursors a process handles at once: one step reads while another waits for the broker.
    static let workers = 2
    /// While a sender's queue holds more messages than this, no step adds to it.
    static let backlog = 10_000
    /// The same for pages of a segment in the rules' queue of the app's events, so that other events wait briefly.
    static let segmentBacklog = 4
    /// How long a step waits for the database before its cursor goes to a retry queue. Shorter than the broker's
    /// `consumer_timeout` of 30 minutes.
    static let databaseTimeout = Duration.seconds(600)
    /// Statement timeouts of a step until its cursor is dead-lettered, after about two hours.
    static let mostTimeouts = 12
    /// Publish attempts of an unroutable or nacked message until the step is postponed.
    static let mostPublishes = 5

    /// The number of ready messages in a queue; `nil` if the broker has no such queue.
    typealias QueueDepth = @Sendable (String) async throws -> Int?

    private let queue = WorkQueue.registryCampaigns
    private let steps: CampaignSteps
    private let store: CampaignStore
    private let depth: QueueDepth
    private let bus: any MessageBus
    private let service: String
    private let bulkThrottle: BulkThrottle
    private let logger: Logger

    init(
        service: String, store: CampaignStore, bus: any MessageBus, depth: @escaping QueueDepth,
        bulkThrottle: BulkThrottle,
        fids: @escaping @Sendable () -> FIDPreference = { FIDPreference() }, logger: Logger
    ) {
        self.service = service
        self.store = store
        self.bus = bus
        self.depth = depth
        self.bulkThrottle = bulkThrottle
        self.logger = logger
        steps = CampaignSteps(store: store, fids: fids)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for _ in 0..<Self.workers { group.addTask { await work() } }
            }
        }
    }

    private func work() async {
        let subscription = bus.subscribe(queue: queue.name, prefetch: 1)
        for await burst in subscription.deliveries {
            for delivery in burst {
                let begun = ContinuousClock.now
                await handle(delivery)
                let pause = bulkThrottle.pause(after: .now - begun)
                // Cancelled: shutting down.
                if pause > .zero { try? await Task.sleep(for: pause) }
            }
        }
        await subscription.cancel()
    }

    /// Handles one cursor. Dead-letters a cursor that cannot be handled, so that other campaigns continue.
    func handle(_ delivery: AMQPDelivery) async {
        do {
            let cursor: CampaignCursor
            do {
                guard delivery.isCursor else { throw WireError.misrouted("is not a campaign cursor's") }
                cursor = try CampaignCursor.decode(wireBody: delivery.body)
            } catch {
                return try await setAside(delivery, nil, Reason(code: ReasonCode.cursorUnreadable, detail: "\(error)"))
            }
            try await handle(cursor, delivery)
        } catch {
            // Cancelled, or the bus is closed: the cursor is in the queue again.
            bus.requeue([delivery.tag])
        }
    }

    private func handle(_ cursor: CampaignCursor, _ delivery: AMQPDelivery) async throws {
        do {
            try await advance(cursor, delivery)
        } catch let failure where Task.isCancelled || failure is CancellationError {
            throw failure
        } catch let failure as PostgresError where failure.code == .sqlState("57014") {
            // 57014 query_canceled: the server cancelled a statement of the step; the database is available.
            try await timedOut(cursor, delivery, failure)
        } catch let failure where failure.isTransient {
            logger.warning(
                "Campaign step failed for now; retrying in 5 s",
                metadata: cursor.metadata.merging([LogKey.error: "\(failure)"]) { $1 })
            try? await steps.yield(cursor)
            try await postpone(cursor, delivery)
        } catch {
            try await setAside(delivery, cursor, Reason(code: ReasonCode.campaignStepFailed, detail: "\(error)"))
        }
    }

    private func advance(_ cursor: CampaignCursor, _ delivery: AMQPDelivery) async throws {
        switch try await verdict(on: cursor, delivery) {
        case .void: bus.acknowledge([delivery.tag])
        case .later: try await postpone(cursor, delivery)
        case .wait: try await yield(cursor, delivery)
        case .finished(let page):
            // A stop before the confirm loses this page. The campaign stays finished.
            if let page { try? await publish([page.message(from: service)]) }
            logger.notice("Campaign is done", metadata: cursor.metadata)
            bus.acknowledge([delivery.tag])
        case .expired:
            logger.notice("Campaign has expired", metadata: cursor.metadata)
            bus.acknowledge([delivery.tag])
        case .step(let step):
            var told: Int64 = 0
            do {
                guard try await hasRoom(for: step) else {
                    // If releasing fails, the rate is briefly lower. The same applies below.
                    try? await steps.releaseUnused(step, telling: 0, of: cursor)
                    return try await yield(cursor, delivery)
                }
                try await publish(step.pushes(from: service))
                told = step.tally.devices
                try await publish([step.next(from: service)])
            } catch {
                try? await steps.releaseUnused(step, telling: told, of: cursor)
                throw error
            }
            bus.acknowledge([delivery.tag])
            count(step, of: cursor)
            try? await steps.releaseUnused(step, telling: step.tally.devices, of: cursor)
        }
    }

    /// Claims a cursor and reads its step. Waits up to 2 s for the campaign's rate limit.
    private func verdict(
        on cursor: CampaignCursor, _ delivery: AMQPDelivery
    ) async throws -> CampaignSteps.Verdict {
        var isOurs = delivery.redelivered
        let usual = delivery.attempt(on: queue) > 1 ? CampaignSteps.smallSize : CampaignSteps.defaultSize
        while true {
            let (held, size) = (isOurs, bulkThrottle.stepSize(usual, throttled: CampaignSteps.smallSize))
            let verdict = try await waitingForDatabase { try await steps.next(cursor, redelivered: held, size: size) }
            guard case .wait(let wait) = verdict, wait <= .seconds(2) else { return verdict }
            try await Task.sleep(for: wait)
            isOurs = true
        }
    }

    /// Waits while the database is unavailable, for at most ``databaseTimeout``.
    private func waitingForDatabase<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
        let deadline = ContinuousClock.now + Self.databaseTimeout
        var isAway = false
        while true {
            do {
                let result = try await Outage.ofDatabase { try await body() }
                if isAway { logger.notice("Database available again; campaigns continue") }
                return result
            } catch let outage as Outage {
                guard ContinuousClock.now < deadline else { throw outage }
                if !isAway {
                    logger.warning("Campaigns wait for the database", metadata: [LogKey.error: "\(outage.underlying)"])
                }
                isAway = true
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// Whether the queues that a step publishes to exist and are not too long.
    private func hasRoom(for step: CampaignSteps.Step) async throws -> Bool {
        for queue in step.queues.sorted() {
            guard let depth = try await depth(queue) else {
                logger.error("Campaign waits for a queue; apply the topology", metadata: ["queue": "\(queue)"])
                return false
            }
            if depth > Self.backlog { return false }
        }
        for queue in step.rulesQueues {
            guard let depth = try await depth(queue) else {
                logger.error("Segment waits for a queue; apply the topology", metadata: ["queue": "\(queue)"])
                return false
            }
            if depth > Self.segmentBacklog { return false }
        }
        return true
    }

    /// Publishes messages, waits for confirms, and publishes refused messages again.
    ///
    /// - Throws: ``NotTaken`` after ``mostPublishes``, and ``Unpublishable`` for a permanently refused message.
    private func publish(_ messages: [AMQPMessage]) async throws {
        var left = messages
        for attempt in 1... {
            guard !left.isEmpty else { return }
            let answers = try await bus.publish(left)
            var refused: [AMQPMessage] = []
            var reply = "nack"
            for (message, answer) in zip(left, answers) {
                switch answer {
                case .confirmed: continue
                case .nacked: refused.append(message)
                case .returned(let code, let text) where answer.isPermanentRefusal:
                    throw Unpublishable(reply: "\(code) \(text)")
                case .returned(let code, let text):
                    refused.append(message)
                    reply = "\(code) \(text)"
                }
            }
            left = refused
            guard !left.isEmpty else { return }
            guard attempt < Self.mostPublishes else { throw NotTaken(messages: left.count, reply: reply) }
            try await Task.sleep(for: .seconds(1))
        }
    }

    /// Messages of a step have no queue, or the broker refuses them for now.
    struct NotTaken: Error, CustomStringConvertible {
        let messages: Int
        let reply: String
        var description: String {
            "the broker refused \(messages) messages (\(reply)); run `pushctl topology apply`"
        }
    }

    /// The broker permanently refuses a message of a step.
    struct Unpublishable: Error, CustomStringConvertible {
        let reply: String
        var description: String { "the broker permanently refuses a message of this step (\(reply))" }
    }

    /// Moves a cursor to the 5 s retry queue.
    private func postpone(_ cursor: CampaignCursor, _ delivery: AMQPDelivery) async throws {
        try await move(delivery, cursor, delivery.retryCopy(on: queue, to: .seconds5, attempt: 1, by: service))
    }

    /// Moves a cursor to the 5 s retry queue and releases its lease.
    private func yield(_ cursor: CampaignCursor, _ delivery: AMQPDelivery) async throws {
        try await waitingForDatabase { try await steps.yield(cursor) }
        try await postpone(cursor, delivery)
    }

    /// Retries a step with fewer devices later, after a statement timeout. Other campaigns continue.
    private func timedOut(
        _ cursor: CampaignCursor, _ delivery: AMQPDelivery, _ timeout: PostgresError
    ) async throws {
        let attempt = delivery.attempt(on: queue)
        guard attempt < Self.mostTimeouts else {
            return try await setAside(
                delivery, cursor, Reason(code: ReasonCode.campaignStepTimeout, detail: timeout.description))
        }
        logger.warning(
            "Campaign step timed out; retrying a smaller one later",
            metadata: cursor.metadata.merging([LogKey.error: "\(timeout)"]) { $1 })
        try? await steps.yield(cursor)
        let level: RetryLevel = attempt < 4 ? .seconds5 : attempt < 7 ? .minutes2 : .minutes15
        try await move(delivery, cursor, delivery.retryCopy(on: queue, to: level, attempt: attempt + 1, by: service))
    }

    /// Dead-letters a cursor at once and marks its range as halted. `pushctl dead replay` continues the range.
    private func setAside(_ delivery: AMQPDelivery, _ cursor: CampaignCursor?, _ reason: Reason) async throws {
        logger.error(
            "Campaign cursor dead-lettered; see `pushctl campaigns show` and `pushctl dead`",
            metadata: (cursor?.metadata ?? delivery.logMetadata).merging([
                LogKey.reason: "\(reason.code)", LogKey.error: "\(reason.detail)",
            ]) { $1 })
        if let cursor { try await waitingForDatabase { try await store.halt(cursor, because: reason) } }
        // The range is halted already.
        try await move(delivery, nil, delivery.deadLetterCopy(on: queue, because: reason, by: service))
        DeadRows.count(in: "registry.campaign_range", because: reason.code)
    }

    /// Publishes a copy of a delivery until confirmed, then acknowledges the delivery. If the broker permanently
    /// refuses the copy, rejects the delivery, so that the broker dead-letters it.
    ///
    /// - Parameter cursor: the cursor whose range to halt then.
    private func move(_ delivery: AMQPDelivery, _ cursor: CampaignCursor?, _ copy: AMQPMessage) async throws {
        while true {
            let answer = try await bus.publish([copy])[0]
            switch answer {
            case .confirmed: return bus.acknowledge([delivery.tag])
            case .returned(let code, let text) where answer.isPermanentRefusal:
                let reply = "\(code) \(text)"
                logger.error(
                    "Broker permanently refuses a cursor's copy; rejecting the cursor to the dead-letter queue",
                    metadata: (cursor?.metadata ?? delivery.logMetadata).merging([LogKey.reason: "\(reply)"]) { $1 })
                if let cursor {
                    let reason = Reason(code: ReasonCode.rejected, detail: reply)
                    try await waitingForDatabase { try await store.halt(cursor, because: reason) }
                    DeadRows.count(in: "registry.campaign_range", because: reason.code)
                }
                return bus.reject([delivery.tag])
            case .nacked, .returned: try await Task.sleep(for: .seconds(1))
            }
        }
    }

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
    fileprivate var metadata: Logger.Metadata {
        logMetadata.merging([LogKey.campaign: "\(Hexadecimal.text(of: campaign))", LogKey.app: "\(app)"]) { $1 }
    }
}

extension AMQPDelivery {
    /// Whether the registry published it, first or as a retry. Other publishers have no permission for these routing
    /// keys.
    fileprivate var isCursor: Bool {
        exchange == ExchangeName.return.name
            ? routingKey == WorkQueue.registryCampaigns.name : routingKey == RoutingKey.campaignCursor
    }
}

extension Error {
    /// Whether the step may succeed later: the database or the broker is unavailable, or a queue is missing.
    fileprivate var isTransient: Bool {
        switch self {
        case is Outage, is AMQPError, is CampaignRunner.NotTaken: true
        case let error as PostgresError: error.isRetriableTransaction || error.isTimeout
        default: false
        }
    }
}
