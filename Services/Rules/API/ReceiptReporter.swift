import AMQP
import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Messaging
import PushProtocol
import RuleEngine

/// Publishes receipts to the upstreams of apps that ask for them, on the exchange `notifications` with the routing key
/// `event.receipt.<app>`.
///
/// A request with receipts is answered after the broker's confirms. A repeated request publishes them again under the
/// same ids.
struct ReceiptReporter: Sendable {
    /// The maximum time for the confirms of a request.
    static let patience = Duration.seconds(5)

    let service: String
    let bus: any MessageBus
    /// Whether an app's upstream asks for receipts.
    let isReported: @Sendable (AppID) -> Bool

    /// - Throws: ``APIError`` 503 for reports without a confirm.
    func publish(_ reports: [ReceiptReport], of person: PersonKey) async throws {
        let messages = try reports.map {
            try $0.event(of: person.user).message(of: person.app, correlation: $0.event, from: service)
        }
        guard !messages.isEmpty else { return }
        let bus = bus
        let answers = await withTaskGroup(of: [AMQPConfirmation]?.self) { group in
            group.addTask { try? await bus.publish(messages) }
            group.addTask {
                try? await Task.sleep(for: Self.patience)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        // 312: no queue is bound. A permanent refusal would be repeated.
        let isPublished = answers?.allSatisfy { answer in
            if case .returned(312, _) = answer { return true }
            return answer == .confirmed || answer.isPermanentRefusal
        }
        guard isPublished == true else {
            throw APIError(
                status: .serviceUnavailable, message: "the receipts are stored, but not reported yet; send them again",
                retryAfter: 2)
        }
    }
}
