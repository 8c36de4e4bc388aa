import AMQP
import Messaging
import PushProtocol
import Testing
import TestSupport

/// The time that metrics of the delay count from.
@Suite struct ArrivalTests {
    private let now = Timestamp(milliseconds: 1_790_000_100_250)

    private func arrival(timestamp: Int64?, header: Timestamp?) -> Timestamp {
        Inbound(
            queue: .rulesEvents, exchange: "events", routingKey: "demo.x", timestamp: timestamp, body: [],
            firstSeen: now, arrivedAt: header
        ).eventArrival
    }

    @Test func `an event arrives at its header, at the end of its timestamp's second, or when it is received`() {
        let header = now - .seconds(7)
        #expect(arrival(timestamp: now.seconds - 20, header: header) == header)
        #expect(arrival(timestamp: now.seconds - 20, header: nil) == Timestamp(milliseconds: 1_790_000_080_999))
        #expect(arrival(timestamp: nil, header: nil) == now)
    }

    @Test func `an event does not arrive after it was received`() {
        #expect(arrival(timestamp: now.seconds, header: nil) == now)
        #expect(arrival(timestamp: now.seconds + 900, header: nil) == now)
        #expect(arrival(timestamp: nil, header: now + .seconds(900)) == now)
    }

    @Test func `the arrival of a message is in a header, and survives a retry`() {
        let message = Outbound(
            exchange: .pushes, routingKey: "apns.bulk.demo", messageID: "1", type: "t", correlationID: "c",
            traceparent: "00-1-2-01", arrivedAt: now, body: []
        ).message(from: "rules")
        #expect(
            message.properties.headers == [
                HeaderName.arrived: .int(now.milliseconds), HeaderName.traceparent: "00-1-2-01",
            ])
        let delivery = AMQPDelivery(
            queue: "q", tag: AMQPDeliveryTag(generation: 0, value: 1), redelivered: false, exchange: "pushes",
            routingKey: "apns.bulk.demo", properties: message.properties, body: [])
        let copy = delivery.retryCopy(on: .rulesEvents, to: .seconds5, attempt: 2, by: "apns-sender")
        #expect(copy.properties.headers[HeaderName.arrived] == .int(now.milliseconds))
    }
}
