import AMQP
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Tells crowds, a step at a time. Any number of processes may run it. What one dies over is published again under the same
/// ids, by whoever looks next. Runs until graceful shutdown.
struct CrowdTeller: Service {
    /// How often it looks when nothing is due.
    static let pace = Duration.milliseconds(250)
    static let longestRest = Duration.seconds(1)

    let service: String
    let store: CrowdStore
    let shelf: RuleShelf
    let bus: any MessageBus
    var now: @Sendable () -> Timestamp = { .now }
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var trouble = false
            while !Task.isCancelled {
                var rest = Self.pace
                do {
                    let begin = ContinuousClock.now
                    // As long as the step took: database and cores are free for half of the time, for those who wait.
                    if try await tellNext() { rest = min(ContinuousClock.now - begin, Self.longestRest) }
                    if trouble { logger.notice("Crowds are told again") }
                    trouble = false
                } catch {
                    if !trouble, !Task.isCancelled {
                        logger.warning("Crowds cannot be told now; they wait", metadata: [LogKey.error: "\(error)"])
                    }
                    trouble = true
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: rest)) != nil else { return }
            }
        }
    }

    /// Takes one crowd a step further.
    ///
    /// - Returns: whether any was due.
    func tellNext() async throws -> Bool {
        switch try await store.advance(by: shelf.book, now: now()) {
        case .nothing: return false
        case .walked: return true
        case .decided(let step):
            if try await publish(step) { try await store.confirm(step, now: now()) }
            return true
        }
    }

    /// - Returns: whether the broker has it; otherwise it is published again when its lease is over.
    private func publish(_ step: CrowdStore.Step) async throws -> Bool {
        let verdict = try EventDraft(step.event).verdict(step.answers, step.statements, unread: step.unread)
        if case .deadLetter(let reason) = verdict.disposition {
            logger.error(
                "A step of a crowd makes a message that no stage takes; its people find it in their inboxes",
                metadata: [LogKey.app: "\(step.crowd.event.app)", LogKey.reason: "\(reason.detail)"])
            return true
        }
        let messages = verdict.outbound.map { $0.message(from: service) }
        guard !messages.isEmpty else { return true }
        var isPublished = true
        for answer in try await bus.publish(messages) {
            switch answer {
            case .confirmed: break
            case .nacked: isPublished = false
            case .returned(let code, let text):
                isPublished = false
                logger.error(
                    "A notification reaches no queue and is published again: apply the topology, or check its permissions",
                    metadata: [LogKey.reason: "\(code) \(text)"])
            }
        }
        return isPublished
    }
}
