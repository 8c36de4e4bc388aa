import AMQP
import Logging
import Messaging
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// Publishing with a result for each message.
@Suite struct PostingTests {
    @Test func `each message has its own result`() async throws {
        let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
        let message = AMQPMessage(
            exchange: ExchangeName.notifications.name, routingKey: "interactive.test",
            properties: AMQPProperties(persistent: true), body: [1])
        var tooLarge = message
        tooLarge.body = [2]
        let refusal = AMQPConfirmation.returned(code: 312, text: "NO_ROUTE")
        bus.answer(publishesTo: .notifications, with: [.confirmed, .nacked, refusal, .confirmed])
        bus.refuse { $0.body == [2] }
        let answers = try await bus.post(
            Array(repeating: message, count: 4) + [tooLarge], kind: "A notification", logger: Logger(label: "tests"))
        #expect(answers == [.confirmed, .retry, .retry, .confirmed, .refused])
        #expect(try await bus.post([], kind: "A notification", logger: Logger(label: "tests")).isEmpty)
    }
}
