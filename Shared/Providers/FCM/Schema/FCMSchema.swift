import PushProtocol

/// The schema of `message` in FCM v1, from the API's discovery document (Firebase: REST Resource projects.messages).
enum FCMSchema {
    /// All fields except the target, which the push sets, and `name`, which FCM sets.
    static let message = FCMObjectSchema([
        "notification": .object(.init(["title": .string, "body": .string, "image": .string])),
        "data": .stringMap,
        "android": .object(android),
        "android_v2": .verbatim,
        "apns": .object(apns),
        "webpush": .object(webpush),
        "fcm_options": .object(options),
    ])

    /// Fields that content must not set.
    static let forbiddenInContent: Set<String> = ["token", "fid", "topic", "condition", "name"]

    private static let options = FCMObjectSchema(["analytics_label": .string])

    private static let android = FCMObjectSchema([
        "collapse_key": .string,
        "priority": .choice(["NORMAL", "HIGH"], ignoringCase: true),
        "ttl": .duration,
        "restricted_package_name": .string,
        "data": .stringMap,
        "notification": .object(androidNotification),
        "fcm_options": .object(options),
        "direct_boot_ok": .bool,
        "bandwidth_constrained_ok": .bool,
        "restricted_satellite_ok": .bool,
    ])

    private static let androidNotification = FCMObjectSchema([
        "title": .string, "body": .string, "icon": .string, "color": .string, "sound": .string, "tag": .string,
        "click_action": .string, "body_loc_key": .string, "body_loc_args": .list(.string), "title_loc_key": .string,
        "title_loc_args": .list(.string), "channel_id": .string, "ticker": .string, "sticky": .bool,
        "event_time": .timestamp, "local_only": .bool,
        "notification_priority": .choice([
            "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX",
        ]),
        "default_sound": .bool, "default_vibrate_timings": .bool, "default_light_settings": .bool,
        "vibrate_timings": .list(.duration),
        "visibility": .choice(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"]),
        "notification_count": .integer,
        "light_settings": .object(lightSettings),
        "image": .string,
        "proxy": .choice(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
        "bypass_proxy_notification": .bool,
    ])

    private static let lightSettings = FCMObjectSchema([
        "color": .object(.init(["red": .number, "green": .number, "blue": .number, "alpha": .number])),
        "light_on_duration": .duration, "light_off_duration": .duration,
    ])

    private static let apns = FCMObjectSchema([
        "headers": .stringMap,
        "payload": .verbatim,
        "fcm_options": .object(.init(["analytics_label": .string, "image": .string])),
        "live_activity_token": .string,
    ])

    private static let webpush = FCMObjectSchema([
        "headers": .stringMap,
        "data": .stringMap,
        "notification": .verbatim,
        "fcm_options": .object(.init(["link": .string, "analytics_label": .string])),
    ])
}

extension FCMSchema {
    /// Validates the content's `message` and returns it in snake_case.
    static func read(_ message: JSONValue) throws(LocalRejection) -> JSONValue {
        if let target = message.object?.keys.sorted().first(where: forbiddenInContent.contains) {
            throw .init(fcm: "not-for-content", at: target)
        }
        let read = try self.message.read(message, at: "")
        if let android = read["android"], android != .null, let newer = read["android_v2"], newer != .null {
            throw LocalRejection("fcm-android-and-android-v2")
        }
        return read
    }
}
