import PushProtocol
import Testing

@testable import ProviderSimulator

/// The message schema, with the FCM request vectors of the conformance set.
@Suite struct FCMMessageTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let what: String
        /// The field of the first violation; `nil` for an accepted message.
        let field: String?
        let message: JSONValue

        init(_ what: String, _ text: String) { self.init(what, nil, text) }

        init(_ what: String, _ field: String?, _ text: String) {
            self.what = what
            self.field = field
            message = try! ProviderJSON.value(of: Array(text.utf8))
        }

        var testDescription: String { what }
    }

    static let cases: [Case] = [
        Case("F01", #"{"token":"FT1","notification":{"title":"T","body":"B"}}"#),
        Case("F02 as strings", #"{"token":"t","data":{"n":"42","b":"true"}}"#),
        Case("F02 raw", "message.data[1].value", #"{"token":"t","data":{"b":"true","n":42}}"#),
        Case("F03", #"{"token":"t","android":{"priority":"high","ttl":"3600s","collapse_key":"k"}}"#),
        Case("F03 in camel case", #"{"token":"t","android":{"collapseKey":"k","directBootOk":true}}"#),
        Case("F04", #"{"token":"t","android":{"ttl":"1.500000000s"}}"#),
        Case("F05", #"{"token":"t","android":{"ttl":"0s"}}"#),
        Case("a ttl without its unit", "message.android.ttl", #"{"token":"t","android":{"ttl":"60"}}"#),
        Case("a ttl as a number", "message.android.ttl", #"{"token":"t","android":{"ttl":60}}"#),
        Case("a ttl of ten decimals", "message.android.ttl", #"{"token":"t","android":{"ttl":"1.0000000000s"}}"#),
        Case("a negative ttl", "message.android.ttl", #"{"token":"t","android":{"ttl":"-1s"}}"#),
        Case("a ttl of four weeks", #"{"token":"t","android":{"ttl":"2419200s"}}"#),
        Case("a ttl beyond four weeks", "message.android.ttl", #"{"token":"t","android":{"ttl":"2419201s"}}"#),
        Case("F06", #"{"topic":"news"}"#),
        Case("F06 with its prefix", "message.topic", #"{"topic":"/topics/news"}"#),
        Case("F07", #"{"condition":"'a' in topics && !('b' in topics)"}"#),
        Case(
            "a condition of five topics",
            #"{"condition":"'a' in topics||'b' in topics||'c' in topics||'d' in topics||'e' in topics"}"#),
        Case(
            "a condition of six topics", "message.condition",
            #"{"condition":"'a' in topics||'b' in topics||'c' in topics||'d' in topics||'e' in topics||'f' in topics"}"#
        ),
        Case("a broken condition", "message.condition", #"{"condition":"'a' in topics &&"}"#),
        Case("an unclosed condition", "message.condition", #"{"condition":"('a' in topics"}"#),
        Case("F08 both", "message", #"{"token":"t","topic":"news"}"#),
        Case("F08 none", "message", #"{"notification":{"title":"T"}}"#),
        Case("F09", #"{"token":"t","apns":{"headers":{"apns-priority":"5"},"payload":{"aps":{"badge":0}}}}"#),
        Case(
            "a header that is a number", "message.apns.headers[0].value",
            #"{"token":"t","apns":{"headers":{"apns-priority":5}}}"#),
        Case(
            "F11",
            ##"{"token":"t","android":{"notification":{"channel_id":"c","color":"#ff0000","notification_priority":"PRIORITY_HIGH","visibility":"PUBLIC","event_time":"2026-01-01T00:00:00Z","vibrate_timings":["0.1s","0.2s"]}}}"##
        ),
        Case(
            "a color by name", "message.android.notification.color",
            #"{"token":"t","android":{"notification":{"color":"red"}}}"#),
        Case(
            "an unknown visibility", "message.android.notification.visibility",
            #"{"token":"t","android":{"notification":{"visibility":"SOMETIMES"}}}"#),
        Case(
            "lights without durations", "message.android.notification.light_settings.light_on_duration",
            #"{"token":"t","android":{"notification":{"lightSettings":{"color":{"red":1}}}}}"#),
        Case(
            "a vibration that is a number", "message.android.notification.vibrate_timings[1]",
            #"{"token":"t","android":{"notification":{"vibrate_timings":["1s",2]}}}"#),
        Case("F12", #"{"fid":"f1"}"#),
        Case("F13 from", "message.data[0].key", #"{"token":"t","data":{"from":"x"}}"#),
        Case("F13 message_type", "message.data[0].key", #"{"token":"t","data":{"message_type":"x"}}"#),
        Case("F13 google.x", "message.data[0].key", #"{"token":"t","data":{"google.x":"x"}}"#),
        Case("F13 gcm.x", "message.android.data[0].key", #"{"token":"t","android":{"data":{"gcm.x":"x"}}}"#),
        Case("F13 collapse_key", #"{"token":"t","data":{"collapse_key":"x"}}"#),
        Case("F15", #"{"token":"t","apns":{"live_activity_token":"L","payload":{"aps":{}}}}"#),
        Case(
            "F16", "message.webpush.fcm_options.link", #"{"token":"t","webpush":{"fcm_options":{"link":"http://x"}}}"#),
        Case("a label", #"{"token":"t","fcm_options":{"analytics_label":"a-b_c.d~e%f"}}"#),
        Case(
            "a label with a space", "message.fcm_options.analytics_label",
            #"{"token":"t","fcmOptions":{"analyticsLabel":"a b"}}"#),
        Case("an unknown field", "message.android", #"{"token":"t","android":{"urgency":"high"}}"#),
        Case("an unknown field at the top", "message", #"{"token":"t","to":"t"}"#),
        Case("both kinds of android", "message.android_v2", #"{"token":"t","android":{},"android_v2":{}}"#),
        Case("a null is absent", #"{"token":"t","topic":null,"data":null}"#),
        Case("a notification that is text", "message.notification", #"{"token":"t","notification":"hello"}"#),
        Case("a body that is a number", "message.notification.body", #"{"token":"t","notification":{"body":1}}"#),
        Case("4,096 bytes", "message", #"{"token":"t","data":{"k":"\#(String(repeating: "a", count: 4096))"}}"#),
    ]

    @Test(arguments: cases) func `a message is accepted, or rejected with the field's path`(_ one: Case) throws {
        let answer = try #require(Fixture.simulator().send(one.message))
        #expect(answer.status == (one.field == nil ? 200 : 400))
        guard let field = one.field else { return }
        let details = answer.body?["error"]?["details"]?.array ?? []
        let violations = details.flatMap { $0["fieldViolations"]?.array ?? [] }
        #expect(violations.first?["field"]?.string == field)
        #expect(answer.body?["error"]?["status"] == "INVALID_ARGUMENT")
    }

    @Test func `F10, a dry run, gets a fake name and reaches no phone`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"fcm","token":"t","error_code":"UNREGISTERED"}"#)
        let answer = simulator.send(["token": "t"], validateOnly: true)
        #expect(answer?.body?["name"] == "projects/demo-project/messages/fake_message_id")
        #expect(simulator.log.phones.allSatisfy { $0.delivered == 0 })
    }

    @Test func `the last of two members with one name wins`() {
        let simulator = Fixture.simulator()
        var request = Fixture.send(["token": "t"], to: simulator)
        request = Fixture.google(
            request.path, Array(#"{"message":{"token":1,"token":"t"}}"#.utf8), headers: request.headers)
        #expect(ReceivedResponse(simulator.respondGoogle(request))?.status == 200)
    }

    @Test func `errors of the JSON parser carry no FcmError, errors of the message rules do`() {
        func codes(_ message: JSONValue) -> [String] {
            let details = Fixture.simulator().send(message)?.body?["error"]?["details"]?.array ?? []
            return details.compactMap { $0["errorCode"]?.string }
        }
        #expect(codes(["token": "t", "data": ["n": 1]]) == [])
        #expect(codes(["token": "t", "topic": "x"]) == ["INVALID_ARGUMENT"])
    }

    @Test(arguments: [
        "", "{", "[]", #"{"massage":{}}"#, #"{"validate_only":true}"#, #"{"message":{},"validate_only":1}"#,
    ])
    func `a body without a message is rejected`(body: String) {
        let simulator = Fixture.simulator()
        let good = Fixture.send(["token": "t"], to: simulator)
        let request = Fixture.google(good.path, Array(body.utf8), headers: good.headers)
        #expect(ReceivedResponse(simulator.respondGoogle(request))?.status == 400)
    }
}
