import PushProtocol

/// FCM's message rules beyond the JSON shape (ProviderFacts.md §B.3). Expects canonical field names.
struct FCMRules {
    /// In bytes, notification and data together.
    static let maximumSize = 4096
    /// In seconds: four weeks.
    static let maximumTTL: Int64 = 2_419_200

    private(set) var violations: [FCMViolation] = []

    static func violations(of message: [String: JSONValue]) -> [FCMViolation] {
        var rules = FCMRules()
        rules.checkTarget(message)
        rules.checkData(message)
        rules.checkLabels(message)
        rules.checkAndroid(message["android"])
        if message["android"] != nil, message["android_v2"] != nil {
            rules.reject("message.android_v2", "android and android_v2 are mutually exclusive")
        }
        if let link = message["webpush"]?["fcm_options"]?["link"]?.string, !link.hasPrefix("https://") {
            rules.reject("message.webpush.fcm_options.link", "the link is not an https URL")
        }
        rules.checkSize(message)
        return rules.violations
    }

    private mutating func reject(_ field: String, _ description: String) {
        violations.append(FCMViolation(field: field, description: description))
    }

    private mutating func checkTarget(_ message: [String: JSONValue]) {
        let targets = ["fid", "token", "topic", "condition"].filter { message[$0] != nil }
        guard targets.count == 1 else {
            let found = targets.isEmpty ? "none is set" : "\(targets.joined(separator: " and ")) are set"
            return reject("message", "exactly one of fid, token, topic and condition is needed; \(found)")
        }
        if let topic = message["topic"]?.string, !Self.isTopic(topic) {
            reject("message.topic", "a topic is 1 to 900 of the characters a-z A-Z 0-9 - _ . ~ %")
        }
        if let condition = message["condition"]?.string, case .failure(let problem) = FCMCondition.read(condition) {
            reject("message.condition", problem.description)
        }
    }

    static func isTopic(_ text: String) -> Bool {
        (1...900).contains(text.utf8.count) && text.utf8.allSatisfy(isLabelByte)
    }

    private static func isLabelByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
            UInt8(ascii: "~"), UInt8(ascii: "%"):
            true
        default: false
        }
    }

    private mutating func checkData(_ message: [String: JSONValue]) {
        for (path, data) in [
            ("message.data", message["data"]), ("message.android.data", message["android"]?["data"]),
        ] {
            for (index, key) in (data?.object ?? [:]).keys.sorted().enumerated() where Self.isReserved(key) {
                reject("\(path)[\(index)].key", "“\(key)” is a reserved data key")
            }
        }
    }

    static func isReserved(_ key: String) -> Bool {
        key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm")
    }

    private mutating func checkLabels(_ message: [String: JSONValue]) {
        let blocks =
            [("message", JSONValue.object(message))]
            + ["android", "apns", "webpush"].compactMap { name in message[name].map { ("message.\(name)", $0) } }
        for (path, block) in blocks {
            guard let label = block["fcm_options"]?["analytics_label"]?.string else { continue }
            guard (1...50).contains(label.utf8.count), label.utf8.allSatisfy(Self.isLabelByte) else {
                reject("\(path).fcm_options.analytics_label", "a label is 1 to 50 of a-z A-Z 0-9 - _ . ~ %")
                continue
            }
        }
    }

    private mutating func checkAndroid(_ android: JSONValue?) {
        if let ttl = android?["ttl"]?.string.flatMap(FCMDuration.init),
            ttl.isNegative || ttl.seconds > Self.maximumTTL
        {
            reject("message.android.ttl", "a ttl is 0s to \(Self.maximumTTL)s")
        }
        let notification = android?["notification"]
        if let color = notification?["color"]?.string,
            color.utf8.count != 7 || !color.hasPrefix("#") || !color.dropFirst().allSatisfy({ $0.isHexDigit })
        {
            reject("message.android.notification.color", "a color is #rrggbb")
        }
        if let lights = notification?["light_settings"] {
            for name in ["color", "light_on_duration", "light_off_duration"] where lights[name] == nil {
                reject("message.android.notification.light_settings.\(name)", "light settings require \(name)")
            }
        }
        if let count = notification?["notification_count"]?.int, count < 0 {
            reject("message.android.notification.notification_count", "a count must not be negative")
        }
    }

    private mutating func checkSize(_ message: [String: JSONValue]) {
        var writer = JSONWriter()
        for name in ["notification", "data"] { message[name].map { writer.value($0) } }
        guard writer.bytes.count > Self.maximumSize else { return }
        reject(
            "message", "notification and data have \(writer.bytes.count) bytes; at most \(Self.maximumSize) are allowed"
        )
    }
}
