import AMQP
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import RuleEngine
import ServiceKit
import ServiceLifecycle

/// Publishes fan-outs step by step.
///
/// Any number of processes may run it. After a crash another process publishes the step again under the same ids. Runs
/// until graceful shutdown.
struct FanOutWorker: Service {
    /// The polling interval when nothing is due.
    static let pace = Duration.milliseconds(250)

    let service: String
    let store: FanOutStore
    let currentRules: CurrentRules
    let bus: any MessageBus
    var bulkThrottle = BulkThrottle()
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot process fan-outs; retrying",
            recoveryMessage: "Processing fan-outs again",
            logger: logger
        ).run { try await processDue() }
    }

    /// Processes all fan-outs that are due, one step of each in turn.
    private func processDue() async throws {
        while true {
            let begun = ContinuousClock.now
            guard try await processNext(), !Task.isCancelled else { return }
            // While interactive messages arrive, pauses as long as the step took.
            try await Task.sleep(for: bulkThrottle.pause(after: .now - begun))
        }
    }

    /// Advances one fan-out by a step.
    ///
    /// - Returns: whether one was due.
    func processNext() async throws -> Bool {
        switch try await store.advance(by: currentRules.ruleSets, now: try await now()) {
        case .nothing: return false
        case .advanced: return true
        case .decided(let step):
            switch try await publish(step) {
            case .confirmed: try await store.confirm(step, now: try await now())
            case .retry: break
            case .refused: try await store.markDead(step, .unsendable)
            }
            return true
        }
    }

    private func publish(_ step: FanOutStore.Step) async throws -> PublishResult {
        let verdict: Verdict
        do throws(WireError) {
            verdict = try EventDraft(step.event, arrivedAt: step.largeAudience.arrivedAt)
                .verdict(step.answers, step.drafts, unread: step.unread)
        } catch {
            verdict = Verdict(.deadLetter(Reason(code: error.code, detail: "\(error)")))
        }
        if case .deadLetter(let reason) = verdict.disposition {
            logger.error(
                "Fan-out step exceeds the message limits; its recipients get the inbox item only",
                metadata: step.largeAudience.event.logMetadata.merging([
                    LogKey.app: "\(step.largeAudience.event.app)", LogKey.reason: "\(reason.detail)",
                ]) { $1 })
            return .confirmed
        }
        let messages = verdict.outbound.map { $0.message(from: service) }
        let results = Set(try await bus.post(messages, kind: "A notification", logger: logger))
        return results.contains(.refused) ? .refused : results.contains(.retry) ? .retry : .confirmed
    }
}
