/// Checks a body against the routing key of its first publication: app, lane, verb and origin must match. The broker
/// restricts publishers by routing key and cannot read bodies.
///
/// All checks throw `WireError.misrouted`, for which the message is dead-lettered.
extension Notification {
    /// Accepts `<lane>.<app>`, and `bulk.<app>` for a notification to an audience.
    package func check(routingKey: String) throws(WireError) {
        if routingKey == RoutingKey.notification(lane, app) { return }
        if audience != nil, routingKey == RoutingKey.notification(.bulk, app) { return }
        throw .misrouted("names another app or lane than the body")
    }
}

extension DeviceCommand {
    /// Accepts `command.<verb>.<app>` and `command.<verb>`. Publishing the second form requires access to all apps.
    package func check(routingKey: String) throws(WireError) {
        guard [self.routingKey, "command.\(command.verb.rawValue)"].contains(routingKey) else {
            throw .misrouted("names another verb or app than the body")
        }
    }
}

extension DeviceEvent {
    /// Accepts `event.<change>`.
    package func check(routingKey: String) throws(WireError) {
        guard routingKey == self.routingKey else { throw .misrouted("names another event than the body") }
    }
}

extension Outcomes {
    /// Accepts `<origin>.…`: a sender reports outcomes of its own provider only.
    package func check(routingKey: String) throws(WireError) {
        guard routingKey.prefix(while: { $0 != "." }) == origin.rawValue else {
            throw .misrouted("names another origin than the body")
        }
    }
}
