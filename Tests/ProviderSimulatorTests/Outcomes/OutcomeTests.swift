import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct OutcomeTests {
    static func scripted(_ text: String) throws -> ReceivedResponse? {
        let simulator = Fixture.simulator()
        try simulator.play(text)
        return simulator.push { $0["apns-topic"] = Fixture.bundle }
    }

    @Test func `a scripted 410 has the scripted timestamp`() throws {
        let answer = try Self.scripted(
            #"{"provider":"apns","token":"\#(Fixture.token.uppercased())","status":410,"reason":"Unregistered","timestamp":1767225000000}"#
        )
        #expect(answer?.status == 410)
        #expect(answer?.body == ["reason": "Unregistered", "timestamp": 1_767_225_000_000])
    }

    @Test func `omitted members get the provider's defaults`() throws {
        let gone = try Self.scripted(#"{"provider":"apns","status":410}"#)
        #expect(gone?.body == ["reason": "Unregistered", "timestamp": .int(Fixture.now.milliseconds)])
        #expect(
            try Self.scripted(#"{"provider":"apns","status":410,"timestamp":null}"#)?.body == ["reason": "Unregistered"]
        )
        #expect(try Self.scripted(#"{"provider":"apns","reason":"BadTopic"}"#)?.status == 400)
        #expect(try Self.scripted(#"{"provider":"apns","status":418,"reason":"Teapot"}"#)?.reason == "Teapot")
        #expect(try Self.scripted(#"{"provider":"apns","status":503}"#)?.reason == "ServiceUnavailable")
    }

    @Test func `an outcome with a count ends, and the provider accepts again`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(
            #"[{"provider":"apns","token":"aa","status":503,"count":2},{"provider":"apns","token":"aa","status":429,"count":1}]"#
        )
        let statuses = (1...4).map { _ in simulator.push { $0.path = "/3/device/aa" }?.status }
        #expect(statuses == [503, 503, 429, 200])
    }

    @Test func `a later script for the same token replaces the earlier`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns","token":"aa","status":503}"#)
        try simulator.play(#"{"provider":"apns","token":"aa","status":500}"#)
        #expect(simulator.push { $0.path = "/3/device/aa" }?.status == 500)
        simulator.state.outcomes.removeAll()
        #expect(simulator.push { $0.path = "/3/device/aa" }?.status == 200)
    }

    @Test func `a token's script precedes its app's, and that precedes the provider's`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(
            """
            [{"provider":"apns","status":500,"count":1},{"provider":"apns","app":"com.example.app","status":503,"count":1},
             {"provider":"apns","token":"aa","status":429,"count":1},{"provider":"fcm","status":500}]
            """)
        let statuses = (1...4).map { _ in simulator.push { $0.path = "/3/device/aa" }?.status }
        #expect(statuses == [429, 503, 500, 200])
    }

    @Test func `a request that fails the checks consumes no scripted outcome`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns","status":503,"count":1}"#)
        #expect(simulator.push { $0["apns-topic"] = nil }?.reason == "MissingTopic")
        #expect(simulator.push()?.status == 503)
    }

    @Test(
        arguments: [
            (#""reset":7"#, [.reset(code: 7)]), (#""drop":true"#, [.dropConnection]), (#""silence":true"#, [.silence]),
            (#""silence":true,"delay_ms":5"#, [.wait(.milliseconds(5)), .silence]),
            (
                #""goaway":{"last_stream":"before","code":2,"text":"bye"}"#,
                [.goAway(GoAway(lastStream: .before, code: 2, debugData: Array("bye".utf8)))]
            ),
        ] as [(String, [WireAction])]) func `faults can be scripted`(members: String, actions: [WireAction]) throws
    {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns",\#(members)}"#)
        #expect(simulator.respondAPNs(Fixture.push(), in: .production) == actions)
    }

    @Test func `a response can be late, in two parts, with another stream limit, before a GOAWAY`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(
            #"{"provider":"apns","status":400,"reason":"BadTopic","delay_ms":10,"body_delay_ms":20,"max_streams":3,"omit_id":true,"goaway":{"last_stream":"graceful","reason":"Shutdown"}}"#
        )
        let actions = simulator.respondAPNs(Fixture.push(), in: .production)
        let reply = Reply(
            status: 400, headers: [Header("content-type", "application/json")],
            body: Array(#"{"reason":"BadTopic"}"#.utf8))
        #expect(
            actions == [
                .wait(.milliseconds(10)), .limitStreams(3), .respond(reply, bodyAfter: .milliseconds(20)),
                .goAway(GoAway(lastStream: .graceful, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))),
            ])
    }

    @Test func `FCM responses are scripted with FCM's error codes`() throws {
        func answer(_ members: String) throws -> ReceivedResponse? {
            let simulator = Fixture.simulator()
            try simulator.play(#"{"provider":"fcm","token":"t",\#(members)}"#)
            return simulator.send(["token": "t"])
        }
        let gone = try answer(#""error_code":"UNREGISTERED""#)
        #expect(gone?.status == 404 && gone?.body?["error"]?["status"] == "NOT_FOUND")
        let disabled = try answer(
            #""error_code":"INVALID_ARGUMENT","apns_error":{"status":410,"reason":"Unregistered"},"field":"message.token""#
        )
        #expect(disabled?.status == 400)
        #expect(disabled?.body?["error"]?["details"]?.array?.count == 3)
        #expect(try answer(#""status":401"#)?.body?["error"]?["details"] == nil)
        #expect(try answer(#""error_code":"UNAVAILABLE","retry_after":"soon""#)?.headers["retry-after"] == "soon")
        let html = try answer(#""status":502,"body":"<html>","content_type":"text/html""#)
        #expect(html?.headers["content-type"] == "text/html" && html?.body == nil)
    }

    @Test(arguments: [
        ("[1]", "[0] is not an object"), ("3", "the body is not an object"),
        (#"{"token":"aa"}"#, "provider is missing"),
        (#"{"provider":"wns"}"#, "provider is none of apns, fcm, webpush, oauth"),
        (#"{"provider":"apns","stauts":410}"#, "stauts is unknown"),
        (#"[{"provider":"apns"},{"provider":"apns","x":1}]"#, "[1].x is unknown"),
        (#"{"provider":"apns","status":"410"}"#, "status is not a whole number"),
        (#"{"provider":"apns","status":99,"reason":"x"}"#, "status is not a whole number from 200 to 599"),
        (#"{"provider":"apns","status":400}"#, "reason is missing: several reasons have the status 400"),
        (#"{"provider":"apns","reason":"FutureReason"}"#, "status is missing"),
        (#"{"provider":"apns","count":0}"#, "count is not a whole number"),
        (#"{"provider":"apns","delay_ms":-1}"#, "delay_ms is not"), (#"{"provider":"apns","token":7}"#, "token is not"),
        (#"{"provider":"apns","error_code":"INTERNAL"}"#, "error_code has no meaning for apns"),
        (#"{"provider":"fcm","reason":"Unregistered"}"#, "reason has no meaning for fcm"),
        (#"{"provider":"fcm","error_code":"NEW_ONE"}"#, "status is missing"),
        (#"{"provider":"oauth","token":"t"}"#, "token has no meaning for oauth"),
        (#"{"provider":"apns","expires_in":1}"#, "expires_in has no meaning for apns"),
        (#"{"provider":"oauth","expires_in":"x"}"#, "expires_in is not seconds"),
        (#"{"provider":"apns","silence":true,"status":500}"#, "status cannot be combined with"),
        (#"{"provider":"apns","silence":true,"drop":true}"#, "drop cannot be combined with"),
        (#"{"provider":"apns","drop":true,"goaway":{"last_stream":"before"}}"#, "drop cannot be combined with"),
        (#"{"provider":"apns","status":500,"after":"headers"}"#, "after goes with"),
        (#"{"provider":"apns","status":500,"accepted":true}"#, "accepted goes with"),
        (#"{"provider":"apns","status":500,"share":2}"#, "share is not a number from 0.0 to 1.0"),
        (#"{"provider":"apns","status":500,"share":0.1,"every":3}"#, "every and share exclude each other"),
        (
            #"[{"provider":"apns","status":500,"share":0.6},{"provider":"apns","status":503,"share":0.6}]"#,
            "the shares for one token, app or provider add up"
        ),
        (#"{"provider":"apns","delay_ms":{"uniform":[5]}}"#, "delay_ms.uniform is not [least, most]"),
        (#"{"provider":"apns","delay_ms":{"p50":5,"p99":4}}"#, "delay_ms is not milliseconds"),
        (#"{"provider":"apns","delay_ms":{}}"#, "delay_ms is not milliseconds"),
        (#"{"provider":"apns","status":503,"retry_after":{}}"#, "retry_after.date_in is missing"),
        (#"{"provider":"apns","status":410,"timestamp":{}}"#, "timestamp.ago_ms is missing"),
        (#"{"provider":"apns","silence":1}"#, "silence is not true or false"),
        (#"{"provider":"apns","goaway":{}}"#, "goaway.last_stream is missing"),
        (#"{"provider":"apns","goaway":{"last_stream":"never"}}"#, "goaway.last_stream is none of"),
        (#"{"provider":"apns","retry_after":true,"status":500}"#, "retry_after is not"),
        (#"{"provider":"apns","retry_after":"a\nb","status":500}"#, "retry_after is not"),
        (#"{"provider":"apns","token":"a","app":"b"}"#, "app and token exclude each other"),
        (#"{"provider":"fcm","apns_error":{"status":410}}"#, "apns_error needs"),
    ]) func `an invalid script is rejected with a reason`(text: String, problem: String) throws {
        let value = try ProviderJSON.value(of: Array(text.utf8))
        let error = #expect(throws: ControlRequestError.self) { try OutcomeScript.read(value) }
        #expect(error?.description.hasPrefix(problem) == true, "\(error?.description ?? "")")
    }
}
