import PushProtocol

/// Checks limits of FCM beyond the schema, so invalid messages are rejected before sending (ProviderFacts.md §B.3).
enum FCMLimits {
    /// The maximum size of `notification` and `data` together, as compact JSON in bytes.
    static let maximumPayload = 4096
    /// The maximum `ttl`: four weeks, in seconds.
    static let maximumTTL: Int64 = 2_419_200

    static func check(_ message: JSONValue) throws(LocalRejection) {
        try check(data: message["data"], at: "data")
        try check(data: message["android"]?["data"], at: "android.data")
        try check(android: message["android"])
        try check(appleHeaders: message["apns"]?["headers"])
        try check(options: message["fcm_options"], at: "fcm_options")
        for platform in ["android", "apns", "webpush"] {
            try check(options: message[platform]?["fcm_options"], at: "\(platform).fcm_options")
        }
        if let link = message["webpush"]?["fcm_options"]?["link"]?.string, !link.hasPrefix("https://") {
            throw .init(fcm: "not-https", at: "webpush.fcm_options.link")
        }
        guard size(of: message) <= maximumPayload else { throw LocalRejection("payload-too-large") }
    }

    /// The size that ``maximumPayload`` limits.
    static func size(of message: JSONValue) -> Int {
        [message["notification"], message["data"]].compactMap { $0 }.reduce(0) { $0 + JSONText.bytes(of: $1).count }
    }

    private static func check(data: JSONValue?, at path: @autoclosure () -> String) throws(LocalRejection) {
        guard let members = data?.object, members.keys.contains(where: isReserved) else { return }
        throw .init(fcm: "reserved-data-key", at: path())
    }

    /// FCM forwards these headers, and Apple rejects the push.
    private static func check(appleHeaders headers: JSONValue?) throws(LocalRejection) {
        for (name, value) in headers?.object ?? [:] where name.lowercased() == "apns-collapse-id" {
            guard let text = value.string, text != FCMMessage.notificationIDPlaceholder,
                let problem = CollapseID.problem(with: text)
            else { continue }
            throw .init(fcm: problem, at: "apns.headers.apns-collapse-id")
        }
    }

    private static func check(options: JSONValue?, at path: @autoclosure () -> String) throws(LocalRejection) {
        guard let label = options?["analytics_label"]?.string else { return }
        guard label.utf8.count <= 50, FCMTopic.isName(label) else {
            throw .init(fcm: "not-a-label", at: "\(path()).analytics_label")
        }
    }

    /// Whether FCM reserves the key, by the broader of its two published rules (ProviderFacts.md §B.3).
    private static func isReserved(_ key: String) -> Bool {
        key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm")
    }

    /// Whether a name in `source` is reserved. The name is ASCII.
    static func isReserved(_ source: UnsafeBufferPointer<UInt8>, _ name: Range<Int>) -> Bool {
        // The first letter decides for most names.
        switch source[name.lowerBound] {
        case UInt8(ascii: "f"), UInt8(ascii: "g"), UInt8(ascii: "m"):
            isReserved(String(decoding: UnsafeBufferPointer(rebasing: source[name]), as: UTF8.self))
        default: false
        }
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
