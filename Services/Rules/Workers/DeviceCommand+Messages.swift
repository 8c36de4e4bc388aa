import AMQP
import FoundationEssentials
import Messaging
import PushProtocol

extension DeviceCommand {
    /// Returns the command to the registry that cancels a campaign. A repeat has the same id.
    static func message(cancelling campaign: UUID, of app: AppID, from service: String) throws(WireError) -> AMQPMessage
    {
        let id = DerivedID.uuid5(DerivedID.namespace, "cancelled", ids: [campaign])
        let text = id.uuidString.lowercased()
        let command = DeviceCommand(
            trace: Trace(id: id, correlation: text, causation: text), app: app, command: .cancel(campaign: campaign))
        return try Outbound(command, to: .devices, routingKey: command.routingKey).message(from: service)
    }
}
