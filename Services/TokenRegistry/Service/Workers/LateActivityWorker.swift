import AMQP
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import RegistryStore
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Sends the newest state to Live Activities whose phones reported their token after the state was sent. An activity
/// whose surface has ended meanwhile ends at once. Any number of processes may run it. Runs until graceful shutdown.
struct LateActivityWorker: Service {
    static let pace = Duration.milliseconds(250)
    /// Rounds between two deletions of old states.
    private static let roundsBetweenSweeps = 2400

    let service: String
    let states: LiveStateStore
    let registrations: RegistrationStore
    let bus: any MessageBus
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        let rounds = Mutex(0)
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot send states to late Live Activities; retrying",
            recoveryMessage: "Sending states to late Live Activities again", logger: logger
        ).runWithOwnPauses {
            let round = rounds.withLock { round in
                round += 1
                return round
            }
            if round % Self.roundsBetweenSweeps == 1 { _ = try await states.sweep(now: try await now()) }
            try await sendDue()
            return Self.pace
        }
    }

    /// Sends the states of all reported tokens.
    func sendDue() async throws {
        while try await states.drain(publish: publish) == LiveStateStore.batch {}
    }

    private func publish(_ late: [LiveStateStore.Late]) async throws {
        let now = try await now()
        let users = Array(Set(late.map(\.state.user)))
        let devices = try await registrations.devices(of: users)
        let byUser = Dictionary(uniqueKeysWithValues: zip(users, devices))
        var messages: [AMQPMessage] = []
        for one in late {
            // A token that has ended or moved to another user since gets nothing.
            let device = (byUser[one.state.user] ?? []).filter {
                $0.device == one.device && $0.scope == one.state.scope
            }
            guard !device.isEmpty else { continue }
            let plan = PushPlan(one.state.message(to: one.device), devices: [device], now: now)
            messages += try plan.outbound().map { $0.message(from: service) }
            Counter(
                label: "heliograph_registry_late_activities_total",
                dimensions: [
                    ("app", one.state.user.app.rawValue), ("event", one.state.isEnd ? "end" : "update"),
                ]
            ).increment()
        }
        for (message, answer) in zip(messages, try await bus.publish(messages)) {
            switch answer {
            case .confirmed: break
            case .nacked: throw NotConfirmed()
            case .returned(let code, let text):
                // The phone gets the next state.
                logger.error(
                    "Broker refuses the state of a late Live Activity; dropping it. Apply the topology",
                    metadata: message.logMetadata.merging([LogKey.reason: "\(code) \(text)"]) { $1 })
            }
        }
    }

    private struct NotConfirmed: Error, CustomStringConvertible {
        let description = "the broker does not take the state of a Live Activity for now"
    }
}
