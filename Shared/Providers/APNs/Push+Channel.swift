import PushProtocol

extension Push {
    /// The content for APNs. The start of a Live Activity names the channel of the push's environment; then the activity
    /// has no token of its own (Apple: Starting and updating Live Activities with ActivityKit push notifications).
    var apnsContent: Content {
        // Decoded once: a push from the bus decodes its content on each access.
        var content = content
        guard let channel = content.apns?.channels?[environment.rawValue] else { return content }
        var payload = content.apns?.payload?.object ?? [:]
        var aps = payload["aps"]?.object ?? [:]
        aps["input-push-token"] = nil
        aps["input-push-channel"] = .string(channel.rawValue)
        payload["aps"] = .object(aps)
        content.apns?.payload = .object(payload)
        return content
    }
}
