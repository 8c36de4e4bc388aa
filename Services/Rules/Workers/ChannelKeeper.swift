import AMQP
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import RuleLanguage
import ServiceKit
import ServiceLifecycle

/// Keeps a few unused broadcast channels ready for live surfaces, and has the channels of ended surfaces deleted. Asks the
/// APNs sender, which has the credentials, until it answers.
///
/// Any number of processes may run it. Runs until graceful shutdown.
struct ChannelKeeper: Service {
    /// The polling interval.
    static let pace = Duration.seconds(1)

    let service: String
    let store: ChannelStore
    let currentRules: CurrentRules
    let bus: any MessageBus
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot request broadcast channels; retrying",
            recoveryMessage: "Requesting broadcast channels again", logger: logger
        ).run { try await requestDue() }
    }

    func requestDue() async throws {
        let wanted = currentRules.ruleSets.ruleSets.mapValues(\.channelEnvironments)
        try await store.refill(wanted, now: try await now())
        while true {
            let requests = try await store.take(now: try await now())
            try await publish(requests)
            guard requests.count == ChannelStore.batch, !Task.isCancelled else { return }
        }
    }

    private func publish(_ requests: [ChannelStore.Request]) async throws {
        let messages = try requests.map { try $0.message(from: service) }
        let results = try await bus.post(messages, kind: "A channel request", logger: logger)
        for (request, result) in zip(requests, results) {
            switch result {
            case .confirmed, .retry: continue
            case .refused: try await store.markDead(request)
            }
        }
    }
}

extension ChannelStore.Request {
    fileprivate func message(from service: String) throws(WireError) -> AMQPMessage {
        let text = id.uuidString.lowercased()
        let request = ChannelRequest(
            trace: Trace(id: id, correlation: text, causation: text), app: app, environment: environment, id: id,
            operation: operation)
        return try Outbound(request, to: .channels, routingKey: RoutingKey.channelRequest(app)).message(from: service)
    }
}
