/// The schema of `messages:send` (ProviderFacts.md §B.2, §B.3).
extension FCMMessageShape {
    static let sendRequest = FCMMessageShape(["message": .message(message), "validate_only": .bool])

    private static let message = FCMMessageShape([
        "name": .string, "fid": .string, "token": .string, "topic": .string, "condition": .string,
        "notification": .message(notification), "data": .stringMap, "android": .message(android),
        "android_v2": .anyObject, "apns": .message(apns), "webpush": .message(webpush),
        "fcm_options": .message(fcmOptions),
    ])

    private static let notification = FCMMessageShape(["title": .string, "body": .string, "image": .string])

    private static let fcmOptions = FCMMessageShape(["analytics_label": .string])

    private static let android = FCMMessageShape([
        "collapse_key": .string, "priority": .enumeration(["NORMAL", "HIGH"], foldsCase: true), "ttl": .duration,
        "restricted_package_name": .string, "data": .stringMap, "notification": .message(androidNotification),
        "fcm_options": .message(fcmOptions), "direct_boot_ok": .bool, "bandwidth_constrained_ok": .bool,
        "restricted_satellite_ok": .bool,
    ])

    private static let androidNotification = FCMMessageShape([
        "title": .string, "body": .string, "icon": .string, "color": .string, "sound": .string, "tag": .string,
        "click_action": .string, "body_loc_key": .string, "body_loc_args": .list(.string), "title_loc_key": .string,
        "title_loc_args": .list(.string), "channel_id": .string, "ticker": .string, "sticky": .bool,
        "event_time": .timestamp, "local_only": .bool,
        "notification_priority": .enumeration([
            "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX",
        ]),
        "default_sound": .bool, "default_vibrate_timings": .bool, "default_light_settings": .bool,
        "vibrate_timings": .list(.duration),
        "visibility": .enumeration(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"]),
        "notification_count": .integer, "light_settings": .message(lightSettings), "image": .string,
        "proxy": .enumeration(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
        "bypass_proxy_notification": .bool,
    ])

    private static let lightSettings = FCMMessageShape([
        "color": .message(.init(["red": .number, "green": .number, "blue": .number, "alpha": .number])),
        "light_on_duration": .duration, "light_off_duration": .duration,
    ])

    private static let apns = FCMMessageShape([
        "headers": .stringMap, "payload": .anyObject,
        "fcm_options": .message(.init(["analytics_label": .string, "image": .string])),
        "live_activity_token": .string,
    ])

    private static let webpush = FCMMessageShape([
        "headers": .stringMap, "data": .stringMap, "notification": .anyObject,
        "fcm_options": .message(.init(["link": .string, "analytics_label": .string])),
    ])
}
