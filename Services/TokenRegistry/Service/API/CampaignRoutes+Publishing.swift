import AMQP
import HTTPAuth
import HTTPTypes
import Messaging
import PushProtocol
import RegistryStore

extension CampaignRoutes {
    /// The time in which the broker must confirm the first cursors.
    private static let deadline = Duration.seconds(10)

    /// Publishes cursors on `bus`. The client repeats a request whose cursors are not confirmed.
    static func publisher(on bus: any MessageBus, from service: String) -> CursorPublisher {
        { cursors in
            guard !cursors.isEmpty else { return }
            let messages = try cursors.map {
                try Outbound($0, to: .devices, routingKey: RoutingKey.campaignCursor).message(from: service)
            }
            let answers: [AMQPConfirmation]?
            do { answers = try await bus.publish(messages, within: deadline) } catch is AMQPError { answers = nil }
            guard let answers, answers.allSatisfy({ $0 == .confirmed }) else {
                throw APIError(
                    status: .serviceUnavailable,
                    message: "the broker has not confirmed the start of the campaign; send the same request again",
                    retryAfter: 2)
            }
        }
    }
}
