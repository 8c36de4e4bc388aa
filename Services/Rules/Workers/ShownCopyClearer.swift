import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import RuleEngine
import ServiceKit
import ServiceLifecycle

/// Removes copies of revoked notifications from phones, by one clear command for each user and burst.
///
/// The command takes the same way as every push. Copies over a user's budget wait for the next command. Any number of
/// processes may run it. Runs until graceful shutdown.
struct ShownCopyClearer: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(250)
    /// The number of users in one round from which commands take the bulk lane, so that they do not delay notifications.
    static let manyUsers = 100

    let service: String
    let store: ClearCommandStore
    let bus: any MessageBus
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot clear shown notifications; retrying",
            recoveryMessage: "Clearing shown notifications again", logger: logger
        ).run { try await clearDue() }
    }

    func clearDue() async throws {
        while true {
            let (commands, isMore) = try await store.take(now: try await now())
            try await publish(commands)
            guard isMore, !Task.isCancelled else { return }
        }
    }

    private func publish(_ commands: [ClearCommandStore.Command]) async throws {
        let now = try await now()
        let lane: Lane = commands.count < Self.manyUsers ? .interactive : .bulk
        let messages = commands.compactMap { try? message(for: $0, lane, now: now) }
        guard messages.count == commands.count else {
            // A command has at most ``ClearCommand/maximumCopies`` identifiers, which every message can carry.
            return try await store.markDead(commands)
        }
        let results = zip(commands, try await bus.post(messages, kind: "A clear command", logger: logger))
        func with(_ result: PublishResult) -> [ClearCommandStore.Command] {
            results.filter { $0.1 == result }.map(\.0)
        }
        try await store.complete(with(.confirmed), now: now)
        try await store.postpone(with(.retry), now: now)
        try await store.markDead(with(.refused))
        for (app, sent) in Dictionary(grouping: with(.confirmed), by: \.person.app) {
            Counter(label: "heliograph_rules_clear_commands_total", dimensions: [("app", app.rawValue)])
                .increment(by: sent.count)
            Counter(label: "heliograph_rules_copies_cleared_total", dimensions: [("app", app.rawValue)])
                .increment(by: sent.reduce(0) { $0 + $1.copies.count { !$0.isSent } })
        }
    }

    private func message(
        for command: ClearCommandStore.Command, _ lane: Lane, now: Timestamp
    ) throws(WireError) -> AMQPMessage {
        let notification = ClearCommand.notification(
            clearing: command.copies, of: command.person, command: command.id, lane: lane, now: now)
        return try Outbound(
            notification, to: .notifications, routingKey: RoutingKey.notification(lane, command.person.app)
        ).message(from: service)
    }
}
