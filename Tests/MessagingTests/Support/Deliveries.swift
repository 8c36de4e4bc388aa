import AMQP
import Foundation
import PushProtocol

@testable import Messaging

let demo = AppID(rawValue: "demo")!
let queue = WorkQueue.rulesEvents

/// A delivery with the tag `value`.
func delivery(
    _ value: UInt64, redelivered: Bool = false, returns: Int64? = nil, exchange: String = "events",
    routingKey: String = "demo.happened", properties: AMQPProperties = .init(), body: String = "{}",
    generation: UInt64 = 1
) -> AMQPDelivery {
    var properties = properties
    if let returns { properties.headers["x-delivery-count"] = .int(returns) }
    return AMQPDelivery(
        queue: queue.name, tag: AMQPDeliveryTag(generation: generation, value: value), redelivered: redelivered,
        exchange: exchange, routingKey: routingKey, properties: properties, body: Array(body.utf8))
}

extension [AMQPDelivery] {
    var values: [UInt64] { map(\.tag.value) }
}

extension AMQPMessage {
    var text: String { String(decoding: body, as: UTF8.self) }
}

extension Reason {
    static let test = Reason(code: "test-reason", detail: "because the test says so")
}

extension Outbound {
    /// An outbound for the queue `token-registry.notifications.interactive`.
    static func notification(_ text: String, routingKey: String = "interactive.demo") -> Outbound {
        Outbound(
            exchange: .notifications, routingKey: routingKey, messageID: "out-\(text)", type: "test",
            correlationID: "c", traceparent: "00-1-2-01", body: Array(text.utf8))
    }
}
