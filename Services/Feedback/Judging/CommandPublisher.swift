import AMQP
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import ServiceKit

/// Publishes the commands of approved evidence, and marks what the broker has confirmed. What it dies over is published
/// again: the same command under the same id, which the registry finds done.
struct CommandPublisher: Sendable {
    /// How long one process has for what it claimed.
    static let lease = Duration.seconds(30)

    private let service: String
    private let store: JudgementStore
    private let bus: any MessageBus
    private let now: @Sendable () -> Timestamp
    private let logger: Logger

    init(
        service: String, store: JudgementStore, bus: any MessageBus, now: @escaping @Sendable () -> Timestamp,
        logger: Logger
    ) {
        self.service = service
        self.store = store
        self.bus = bus
        self.now = now
        self.logger = logger
    }

    /// Publishes all that is due.
    func publishDue() async throws {
        while true {
            let evidence = try await store.claim(now: now(), lease: Self.lease)
            guard !evidence.isEmpty else { return }
            let commands = evidence.commands
            let messages = try commands.map {
                try Outbound($0, to: .devices, routingKey: $0.routingKey).message(from: service)
            }
            let answers = try await bus.publish(messages)
            var confirmed: Set<UUID> = []
            for (command, answer) in zip(commands, answers) {
                switch answer {
                case .confirmed: if case .deactivate(let device, _, _) = command.command { confirmed.insert(device) }
                case .nacked: break
                case .returned(let code, let text):
                    logger.error(
                        "A command reaches no queue and is published again: apply the topology, or check its permissions",
                        metadata: [LogKey.routingKey: "\(command.routingKey)", LogKey.reason: "\(code) \(text)"])
                }
            }
            try await store.markPublished(evidence.filter { confirmed.contains($0.key.device) }, now: now())
            guard confirmed.count == commands.count, evidence.count == JudgementStore.batch else { return }
        }
    }
}
