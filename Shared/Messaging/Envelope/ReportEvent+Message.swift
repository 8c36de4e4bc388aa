package import AMQP
internal import FoundationEssentials
package import PushProtocol

extension ReportEvent {
    /// The AMQP message for the upstream of an app.
    ///
    /// - Parameters:
    ///   - correlation: the id of the event or message that the report is about.
    ///   - service: the service that publishes it.
    package func message(of app: AppID, correlation: String?, from service: String) throws(WireError) -> AMQPMessage {
        AMQPMessage(
            exchange: kind.exchange.name, routingKey: kind.routingKey(of: app),
            properties: AMQPProperties(
                contentType: CloudEvents.structuredContentType, messageID: id.uuidString.lowercased(),
                correlationID: correlation, type: kind.eventType, appID: service, persistent: true,
                timestamp: Timestamp.now.seconds),
            body: try body())
    }
}
