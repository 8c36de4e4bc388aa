import PushProtocol
import PushSending

/// What FCM would refuse, refused here (`push-protocols` B.3): nothing of it may reach the wire.
enum FCMLimits {
    /// The most bytes of `notification` and `data` together, as compact JSON.
    static let maximumPayload = 4096

    static func check(_ message: JSONValue) throws(LocalRejection) {
        guard case .object(let members) = message else { throw LocalRejection("fcm-message-not-an-object") }
        for target in ["token", "fid", "topic", "condition", "name"] where members[target] != nil {
            throw LocalRejection("fcm-message-names-a-target")
        }
        if members["android"] != nil, members["android_v2"] != nil { throw LocalRejection("android-and-android-v2") }
        try check(data: members["data"])
        try check(data: message[path: "android.data"])
        try check(ttl: message[path: "android.ttl"])
        if let link = message[path: "webpush.fcm_options.link"], link.string?.hasPrefix("https://") != true {
            throw LocalRejection("webpush-link-not-https")
        }
        let bytes = [members["notification"], members["data"]].compactMap { $0 }
            .reduce(0) { $0 + JSONText.bytes(of: $1).count }
        guard bytes <= maximumPayload else { throw LocalRejection("payload-too-large") }
    }

    private static func check(data: JSONValue?) throws(LocalRejection) {
        guard let data else { return }
        guard case .object(let members) = data else { throw LocalRejection("data-not-an-object") }
        for (key, value) in members {
            guard value.string != nil else { throw LocalRejection("data-value-not-a-string") }
            guard !isReserved(key) else { throw LocalRejection("reserved-data-key") }
        }
    }

    /// The broader of the two published rules, so that neither reading is refused.
    private static func isReserved(_ key: String) -> Bool {
        key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm")
    }

    /// Decimal seconds and `s`, at most nine digits of fraction, at most four weeks.
    private static func check(ttl: JSONValue?) throws(LocalRejection) {
        guard let ttl else { return }
        guard let text = ttl.string, let match = text.wholeMatch(of: /(\d{1,7})(\.\d{1,9})?s/),
            let seconds = Int64(match.1), seconds <= FCMMessage.maximumTTL
        else { throw LocalRejection("ttl-invalid") }
    }
}
