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
        let answers = try? await bus.publish(messages, within: Self.patience)
        guard let answers, answers.allSatisfy(\.isFinal) else {
            throw APIError(
                status: .serviceUnavailable, message: "the receipts are stored, but not reported yet; send them again",
                retryAfter: 2)
        }
    }
}
