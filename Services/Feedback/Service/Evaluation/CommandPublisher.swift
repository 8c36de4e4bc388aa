import AMQP
import FeedbackStore
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import ServiceKit

/// Publishes the commands of approved evidence and marks confirmed ones as published.
///
/// After a crash, the next process publishes unconfirmed commands again under the same ids.
struct CommandPublisher: Sendable {
    /// The time for which a process claims evidence.
    static let lease = Duration.seconds(30)

    let service: String
    let store: EvaluationStore
    let bus: any MessageBus
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func publishDue() async throws {
        while true {
            let (evidence, dead) = try await store.claim(now: try await now(), lease: Self.lease)
            dead.countAndLog(because: DeadEvidence.unreadable, logger: logger)
            guard !evidence.isEmpty || !dead.isEmpty else { return }
            var refused: [UUID: String] = [:]
            var commands: [DeviceCommand] = []
            var messages: [AMQPMessage] = []
            for (device, command) in evidence.commandsByDevice {
                do {
                    messages.append(
                        try Outbound(command, to: .devices, routingKey: command.routingKey).message(from: service))
                    commands.append(command)
                } catch {
                    refused[device] = error.description
                }
            }
            let answers = messages.isEmpty ? [] : try await bus.publish(messages)
            var confirmed: Set<UUID> = []
            for (command, answer) in zip(commands, answers) {
                switch answer {
                case .confirmed: if case .deactivate(let device, _, _) = command.command { confirmed.insert(device) }
                case .nacked: break
                case .returned(let code, let text) where answer.isPermanentRefusal:
                    if case .deactivate(let device, _, _) = command.command { refused[device] = "\(code) \(text)" }
                case .returned(let code, let text):
                    logger.error(
                        "Command is unroutable; publishing it again. Apply the topology, or check its permissions",
                        metadata: command.logMetadata.merging([
                            LogKey.routingKey: "\(command.routingKey)", LogKey.reason: "\(code) \(text)",
                        ]) { $1 })
                }
            }
            try await store.markPublished(evidence.filter { confirmed.contains($0.key.device) }, now: try await now())
            let unpublished = evidence.compactMap { one in
                refused[one.key.device].map { DeadEvidence(one, detail: $0) }
            }
            try await store.markDead(unpublished, because: DeadEvidence.unpublishable)
            unpublished.countAndLog(because: DeadEvidence.unpublishable, logger: logger)
            let isSettled = confirmed.count + refused.count == evidence.commandsByDevice.count
            guard isSettled, evidence.count + dead.count == EvaluationStore.batch else { return }
        }
    }
}
