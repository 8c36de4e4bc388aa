import FoundationEssentials
import PushProtocol

/// A Live Activity update to a channel, as a push for the APNs sender.
///
/// All ids are derived from content and channel, so that repeating the command makes the same push.
struct ChannelBroadcast {
    var app: AppID
    var environment: ProviderEnvironment
    var channel: String
    /// The complete payload with `aps`.
    var payload: JSONValue
    /// `5` does not count against the devices' push budget.
    var priority: Int?
    var expiresAt: Timestamp?

    func push(at now: Timestamp) throws(CommandError) -> Push {
        guard payload["aps"]?.object != nil else { throw CommandError("the payload has no “aps” object") }
        let text: [UInt8]
        do { text = try WireCoding.encode(payload) } catch { throw CommandError("the payload: \(error)") }
        let address = [app.rawValue, environment.rawValue, channel]
        let id = DerivedID.uuid5(
            DerivedID.namespace,
            ["broadcast"] + address
                + [
                    String(decoding: text, as: UTF8.self), priority.map { String($0) } ?? "",
                    expiresAt == nil ? "" : "expires",
                ])
        var headers = ["apns-push-type": "liveactivity"]
        headers["apns-priority"] = priority.map { String($0) }
        return Push(
            trace: Trace(id: id, correlation: id.uuidString.lowercased(), causation: id.uuidString.lowercased()),
            app: app, provider: .apns, environment: environment, lane: .interactive,
            content: Content(apns: APNsOverride(headers: headers, payload: payload)), expiresAt: expiresAt,
            targets: [
                Push.Target(
                    device: DerivedID.uuid5(DerivedID.namespace, ["channel"] + address),
                    token: DeviceToken(secret: channel), address: .channel, notification: id, registeredAt: now)
            ])
    }
}
