@testable import AMQP
import CRabbitMQ
@testable import Messaging
import PushProtocol
import TestSupport

extension FuzzTarget {
    /// Frames from the broker, and the messages that they contain.
    static let amqpFrames = FuzzTarget("amqp-frames") {
        AMQPSeeds.all
    } read: { input in
        let connection = amqp_new_connection()
        defer { _ = amqp_destroy_connection(connection) }
        var interner = StringInterner()
        var assembler = FrameAssembler(maximumBody: 64)
        var rest = input
        try rest.withUnsafeMutableBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                var raw = amqp_frame_t()
                let unread = amqp_bytes_t(len: bytes.count - offset, bytes: bytes.baseAddress.map { $0 + offset })
                let count = amqp_handle_input(connection, unread, &raw)
                guard count > 0 else { return }
                offset += Int(count)
                // Zero: the frame is incomplete.
                if raw.frame_type != 0 { try handle(Frame(raw, &interner), &assembler) }
            }
        }
    }

    private static func handle(_ frame: Frame, _ assembler: inout FrameAssembler) throws {
        let content: FrameAssembler.Content?
        switch frame {
        case .deliver(let deliver):
            try assembler.begin(deliver)
            return
        case .returned(let returned):
            try assembler.begin(returned)
            return
        case .header(let bodySize, let properties): content = try assembler.header(bodySize: bodySize, properties)
        case .body(let part): content = try assembler.body(part)
        case .ack, .nack, .cancel, .channelClose, .connectionClose, .blocked, .unblocked, .flow, .heartbeat, .other:
            return
        }
        guard case .delivery(let deliver, let properties, let body)? = content else { return }
        let queue = WorkQueue.rulesEvents
        let delivery = AMQPDelivery(
            queue: queue.name, tag: AMQPDeliveryTag(generation: 1, value: deliver.deliveryTag),
            redelivered: deliver.redelivered, exchange: deliver.exchange, routingKey: deliver.routingKey,
            properties: properties, body: body)
        let inbound = Inbound(delivery, queue: queue, now: .sample)
        let routing = RepublishRouting(service: "fuzz")
        _ = routing.retryCopy(delivery, as: inbound, at: .seconds5, attempt: inbound.attempt)
        _ = routing.deadLetterCopy(
            delivery, as: inbound, because: Reason(code: "fuzz", detail: "a detail"), at: .sample)
        let letter = DeadLetter(delivery, of: queue)
        _ = letter.replayCopy
        _ = letter.keptCopy(at: .sample)
    }
}
