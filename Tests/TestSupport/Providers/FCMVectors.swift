package import PushProtocol

/// FCM messages for the tests of the codec and of the sender.
package enum FCMVectors {
    /// Every member except `android_v2`, with a valid value.
    package static let everything: JSONValue = [
        "notification": ["title": "T", "body": "B", "image": "https://e.org/i.png"],
        "data": ["k": "v"],
        "fcm_options": ["analytics_label": "l-._~%1"],
        "android": [
            "collapse_key": "k", "priority": "normal", "ttl": "2419200s", "restricted_package_name": "org.e",
            "data": ["k": "w"], "fcm_options": ["analytics_label": "l"], "direct_boot_ok": true,
            "bandwidth_constrained_ok": true, "restricted_satellite_ok": false,
            "notification": [
                "title": "T", "body": "B", "icon": "i", "color": "#00Ff00", "sound": "s", "tag": "t",
                "click_action": "a", "body_loc_key": "b", "body_loc_args": ["x"], "title_loc_key": "t",
                "title_loc_args": ["y", "z"], "channel_id": "c", "ticker": "t", "sticky": true,
                "event_time": "2026-01-01T00:00:00Z", "local_only": false, "notification_priority": "PRIORITY_MIN",
                "default_sound": true, "default_vibrate_timings": true, "default_light_settings": false,
                "vibrate_timings": ["0.1s", "2s"], "visibility": "SECRET", "notification_count": 7,
                "light_settings": [
                    "color": ["red": 0.5, "green": 1, "blue": 0, "alpha": 1], "light_on_duration": "0.5s",
                    "light_off_duration": "1.000000001s",
                ],
                "image": "https://e.org/j.png", "proxy": "IF_PRIORITY_LOWERED", "bypass_proxy_notification": true,
            ],
        ],
        "apns": [
            "headers": ["apns-priority": "10"], "payload": ["aps": ["alert": "A"], "mine": [1, nil]],
            "fcm_options": ["analytics_label": "l", "image": "https://e.org/k.png"], "live_activity_token": "L",
        ],
        "webpush": [
            "headers": ["Urgency": "high"], "data": ["k": "v"], "notification": ["requireInteraction": true],
            "fcm_options": ["link": "https://e.org", "analytics_label": "l"],
        ],
    ]
}
