import FoundationEssentials
import PushProtocol

/// A Live Activity update to everybody who follows a channel, as the push that the APNs sender takes.
///
/// Every id follows from what is said to whom, so that saying the same again makes the same push.
struct ChannelBroadcast {
    var app: AppID
    var environment: ProviderEnvironment
    var channel: String
    /// The whole payload, with `aps`.
    var payload: JSONValue
    /// `5` counts against no budget of the devices.
    var priority: Int?
    var expiresAt: Timestamp?

    func push(at now: Timestamp) throws(Refusal) -> Push {
        guard payload["aps"]?.object != nil else { throw Refusal("the payload has no object “aps”") }
        let text: [UInt8]
        do { text = try WireCoding.encode(payload) } catch { throw Refusal("the payload: \(error)") }
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
