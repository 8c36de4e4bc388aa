/// The broker holds each publisher to its routing keys and cannot read bodies. So a stage holds a body to the routing key
/// that the message was first published with: app, lane, verb and origin of the body must be those of the key.
///
/// All throw `WireError.misrouted`, for which the message is dead-lettered.
extension Notification {
    /// `<lane>.<app>`. A notification to an audience may also come as `bulk.<app>`, the lane it goes through.
    package func check(routingKey: String) throws(WireError) {
        if routingKey == RoutingKey.notification(lane, app) { return }
        if audience != nil, routingKey == RoutingKey.notification(.bulk, app) { return }
        throw .misrouted("names another app or lane than the body")
    }
}

extension DeviceCommand {
    /// `command.<verb>.<app>`, or `command.<verb>`. The right to the second form is the right to speak for every app.
    package func check(routingKey: String) throws(WireError) {
        guard [self.routingKey, "command.\(command.verb.rawValue)"].contains(routingKey) else {
            throw .misrouted("names another verb or app than the body")
        }
    }
}

extension DeviceEvent {
    /// `event.<past>`.
    package func check(routingKey: String) throws(WireError) {
        guard routingKey == self.routingKey else { throw .misrouted("names another event than the body") }
    }
}

extension Outcomes {
    /// `<origin>.…`: a sender speaks for its own provider alone.
    package func check(routingKey: String) throws(WireError) {
        guard routingKey.prefix(while: { $0 != "." }) == origin.rawValue else {
            throw .misrouted("names another origin than the body")
        }
    }
}
