import PushProtocol
import PushSending

/// What FCM would refuse of a message whose shape is right, refused here (`push-protocols` B.3): nothing of it may reach
/// the wire.
enum FCMLimits {
    /// The most bytes of `notification` and `data` together, as compact JSON.
    static let maximumPayload = 4096
    /// The longest `ttl`: four weeks, in seconds.
    static let maximumTTL: Int64 = 2_419_200

    static func check(_ message: JSONValue) throws(LocalRejection) {
        for path in ["data", "android.data"] {
            for key in message[path: path]?.object?.keys.sorted() ?? [] where isReserved(key) {
                throw .init(fcm: "reserved-data-key", at: path)
            }
        }
        try check(android: message["android"])
        for path in ["", "android.", "apns.", "webpush."] {
            guard let label = message[path: "\(path)fcm_options.analytics_label"]?.string else { continue }
            guard label.utf8.count <= 50, FCMAddress.isName(label) else {
                throw .init(fcm: "not-a-label", at: "\(path)fcm_options.analytics_label")
            }
        }
        if let link = message[path: "webpush.fcm_options.link"]?.string, !link.hasPrefix("https://") {
            throw .init(fcm: "not-https", at: "webpush.fcm_options.link")
        }
        let bytes = [message["notification"], message["data"]].compactMap { $0 }
            .reduce(0) { $0 + JSONText.bytes(of: $1).count }
        guard bytes <= maximumPayload else { throw LocalRejection("payload-too-large") }
    }

    /// The broader of the two published rules, so that neither reading is refused.
    private static func isReserved(_ key: String) -> Bool {
        key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm")
    }

    private static func check(android: JSONValue?) throws(LocalRejection) {
        if let ttl = android?["ttl"]?.string.flatMap(FCMDuration.init) {
            let isInside =
                !ttl.isNegative && ttl.seconds <= maximumTTL && (ttl.seconds < maximumTTL || ttl.nanoseconds == 0)
            guard isInside else { throw .init(fcm: "not-0-to-4-weeks", at: "android.ttl") }
        }
        guard let notification = android?["notification"] else { return }
        let path = "android.notification"
        if let color = notification["color"]?.string, color.wholeMatch(of: /#[0-9A-Fa-f]{6}/) == nil {
            throw .init(fcm: "not-a-color", at: "\(path).color")
        }
        if let lights = notification["light_settings"] {
            for member in ["color", "light_on_duration", "light_off_duration"] where lights[member] == nil {
                throw .init(fcm: "missing", at: "\(path).light_settings.\(member)")
            }
        }
        let count = notification["notification_count"].flatMap { $0.int ?? $0.string.flatMap { Int64($0) } }
        if let count, count < 0 { throw .init(fcm: "negative", at: "\(path).notification_count") }
    }
}
