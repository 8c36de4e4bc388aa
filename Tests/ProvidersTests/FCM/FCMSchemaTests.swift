import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The content's `message` against FCM's schema and limits (ProviderFacts.md §B.3).
@Suite struct FCMSchemaTests {

    private func rejection(_ message: JSONValue) -> String? {
        do throws(LocalRejection) {
            try FCMLimits.check(FCMSchema.message.dropNulls(of: FCMSchema.read(message)))
            return nil
        } catch {
            return error.reason
        }
    }

    private static func camelCased(_ value: JSONValue, verbatim: Set<String>) -> JSONValue {
        guard case .object(let members) = value else { return value }
        return .object(
            members.reduce(into: [:]) { cased, member in
                let words = member.key.split(separator: "_")
                let name =
                    String(words[0]) + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
                cased[name] =
                    verbatim.contains(member.key) ? member.value : camelCased(member.value, verbatim: verbatim)
            })
    }

    @Test func `every member of the schema is accepted unchanged`() throws {
        #expect(rejection(FCMVectors.everything) == nil)
        #expect(try FCMSchema.read(FCMVectors.everything) == FCMVectors.everything)
        #expect(rejection(["android_v2": ["whatever": 1]]) == nil)
    }

    @Test func `lowerCamelCase names are accepted`() throws {
        let cased = Self.camelCased(FCMVectors.everything, verbatim: ["payload", "data", "headers"])
        #expect(cased[path: "android.notification.channelId"] == "c")
        #expect(try FCMSchema.read(cased) == FCMVectors.everything)
    }

    @Test(
        arguments: [
            ("fcm-not-an-object:message", "text"), ("fcm-unknown-member:titel", ["titel": "T"]),
            ("fcm-unknown-member:android.notification.titel", ["android": ["notification": ["titel": "T"]]]),
            ("fcm-member-spelled-twice:android.collapse_key", ["android": ["collapse_key": "a", "collapseKey": "b"]]),
            ("fcm-not-for-content:token", ["token": "t"]), ("fcm-not-for-content:fid", ["fid": "t"]),
            ("fcm-not-for-content:topic", ["topic": "t"]), ("fcm-not-for-content:condition", ["condition": "t"]),
            ("fcm-not-for-content:name", ["name": "t"]),
            ("fcm-android-and-android-v2", ["android": ["ttl": "1s"], "android_v2": [:]]),
            ("fcm-not-an-object:notification", ["notification": "T"]),
            ("fcm-not-a-string:notification.title", ["notification": ["title": 1]]),
            ("fcm-not-a-map-of-strings:data", ["data": ["n": 1]]),
            ("fcm-not-a-map-of-strings:data", ["data": ["n": nil]]), ("fcm-not-a-map-of-strings:data", ["data": []]),
            ("fcm-not-a-map-of-strings:apns.headers", ["apns": ["headers": ["apns-priority": 5]]]),
            ("fcm-not-an-object:apns.payload", ["apns": ["payload": "x"]]),
            ("fcm-not-a-string:apns.live_activity_token", ["apns": ["liveActivityToken": 5]]),
            ("fcm-not-one-of-its-words:android.priority", ["android": ["priority": "URGENT"]]),
            (
                "fcm-not-one-of-its-words:android.notification.visibility",
                ["android": ["notification": ["visibility": "public"]]]
            ),
            ("fcm-not-a-duration:android.ttl", ["android": ["ttl": "1.5"]]),
            ("fcm-not-a-duration:android.ttl", ["android": ["ttl": 60]]),
            ("fcm-not-a-duration:android.ttl", ["android": ["ttl": "1.0000000001s"]]),
            ("fcm-not-0-to-4-weeks:android.ttl", ["android": ["ttl": "2419201s"]]),
            ("fcm-not-0-to-4-weeks:android.ttl", ["android": ["ttl": "2419200.5s"]]),
            ("fcm-not-0-to-4-weeks:android.ttl", ["android": ["ttl": "-1s"]]),
            ("fcm-not-a-bool:android.direct_boot_ok", ["android": ["direct_boot_ok": "true"]]),
            (
                "fcm-not-an-integer:android.notification.notification_count",
                ["android": ["notification": ["notification_count": 3_000_000_000]]]
            ),
            (
                "fcm-negative:android.notification.notification_count",
                ["android": ["notification": ["notification_count": "-1"]]]
            ),
            (
                "fcm-not-a-list:android.notification.body_loc_args",
                ["android": ["notification": ["body_loc_args": "x"]]]
            ),
            (
                "fcm-not-a-string:android.notification.body_loc_args",
                ["android": ["notification": ["body_loc_args": [1]]]]
            ),
            (
                "fcm-not-a-duration:android.notification.vibrate_timings",
                ["android": ["notification": ["vibrate_timings": ["1"]]]]
            ),
            (
                "fcm-not-a-time:android.notification.event_time",
                ["android": ["notification": ["event_time": "yesterday"]]]
            ),
            ("fcm-not-a-color:android.notification.color", ["android": ["notification": ["color": "red"]]]),
            (
                "fcm-not-a-number:android.notification.light_settings.color.red",
                ["android": ["notification": ["light_settings": ["color": ["red": "x"]]]]]
            ),
            (
                "fcm-missing:android.notification.light_settings.light_on_duration",
                ["android": ["notification": ["light_settings": ["color": [:], "light_off_duration": "1s"]]]]
            ),
            ("fcm-not-a-label:fcm_options.analytics_label", ["fcm_options": ["analytics_label": "a b"]]),
            (
                "fcm-not-a-label:webpush.fcm_options.analytics_label",
                ["webpush": ["fcm_options": ["analytics_label": ""]]]
            ),
            ("fcm-not-https:webpush.fcm_options.link", ["webpush": ["fcm_options": ["link": "http://x"]]]),
            ("fcm-reserved-data-key:android.data", ["android": ["data": ["googlex": "v"]]]),
        ] as [(String, JSONValue)])
    func `an invalid message is rejected with the path of the fault`(reason: String, message: JSONValue) {
        #expect(rejection(message) == reason)
    }

    @Test func `the name of an unknown member is sanitized and limited`() throws {
        let name = "a\n\u{0}b" + String(repeating: "x", count: 1000)
        #expect(rejection([name: 1]) == "fcm-unknown-member:ab" + String(repeating: "x", count: 62))
    }

    @Test func `null removes a rendered member, and stays in verbatim objects`() throws {
        let content = Content(
            title: "T", body: "B", sound: "s",
            fcm: FCMOverride(message: [
                "apns": nil, "notification": ["title": nil],
                "android": ["notification": ["sound": nil], "ttl": nil],
                "webpush": ["notification": ["x": nil], "headers": nil],
            ]))
        let message = try FCMMessage(content: content, badge: nil, expiresAt: .sample, now: .sample).rendered
        #expect(
            message == [
                "notification": ["body": "B"],
                "android": [
                    "priority": "HIGH", "notification": ["tag": .string(FCMMessage.notificationIDPlaceholder)],
                ],
                "webpush": ["notification": ["x": nil]],
            ])
    }

    @Test func `android_v2 replaces the rendered android member`() throws {
        let content = Content(body: "B", fcm: FCMOverride(message: ["androidV2": ["x": 1]]))
        let message = try FCMMessage(content: content, badge: nil, expiresAt: nil, now: .sample).rendered
        #expect(message["android"] == nil && message["android_v2"] == ["x": 1])
    }

    @Test(
        arguments: [
            ("0s", false, 0, 0), ("3600s", false, 3600, 0), ("1.5s", false, 1, 500_000_000),
            ("-0.000000001s", true, 0, 1),
        ] as [(String, Bool, Int64, Int64)])
    func `a duration has seconds and a fraction`(text: String, isNegative: Bool, seconds: Int64, nanoseconds: Int64)
        throws
    {
        let duration = try #require(FCMDuration(text))
        #expect(duration.isNegative == isNegative)
        #expect(duration.seconds == seconds && duration.nanoseconds == nanoseconds)
    }

    @Test(arguments: ["", "s", "1", "1.s", ".5s", "1e3s", "1.0000000001s", " 1s", "1 s", "+1s"])
    func `other texts are not durations`(text: String) { #expect(FCMDuration(text) == nil) }
}
