import PushProtocol
import Testing

@testable import ProviderSimulator

/// Answers that break off, and what the log says of them.
@Suite struct BreakageTests {
    static func play(_ members: String) throws -> (acts: [Act], entry: LoggedRequest?, totals: Totals) {
        let simulator = Fixture.simulator()
        _ = simulator.push()
        simulator.log.removeAll()
        try simulator.play(#"{"provider":"apns",\#(members)}"#)
        let acts = simulator.answerAPNs(Fixture.push(), in: .production)
        return (acts, simulator.log.requests(of: .apns).last, simulator.log.totals(of: .apns))
    }

    static let empty = Reply(status: 200, headers: [Header("apns-id", Fixture.id)])

    @Test(
        arguments: [
            (#""reset":2"#, [.reset(code: 2)]), (#""close":true"#, [.closeConnection]),
            (#""stall":true"#, [.stall]), (#""reset":2,"after":"headers""#, [.begin(empty), .reset(code: 2)]),
            (#""silence":true,"after":"headers""#, [.begin(empty), .silence]),
            (#""drop":true,"after":"answer""#, [.respond(empty, bodyAfter: .zero), .dropConnection]),
        ] as [(String, [Act])]) func `an answer breaks off where it was told to`(members: String, acts: [Act]) throws
    {
        #expect(try Self.play(members).acts == acts)
    }

    @Test func `what broke before an answer was not taken, unless the script says so`() throws {
        let lost = try Self.play(#""drop":true"#)
        #expect(lost.entry?.verdict.isDelivered == false && lost.entry?.verdict.fault == "drop")
        #expect(lost.totals.statuses == [0: 1] && lost.totals.faults == ["drop": 1])
        let taken = try Self.play(#""drop":true,"accepted":true,"name":"cut cable""#)
        #expect(taken.entry?.verdict.isDelivered == true && taken.totals.faults == ["cut cable": 1])
        let said = try Self.play(#""reset":8,"after":"headers","status":410,"reason":"Unregistered""#)
        #expect(said.entry?.verdict.isDelivered == false && said.entry?.verdict.reason == "Unregistered")
        #expect(said.entry?.verdict.status == 410 && said.entry?.verdict.fault == "reset 8 after headers")
    }

    @Test func `a push that was taken and is sent again is a duplicate, by its id`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns","silence":true,"accepted":true,"count":1}"#)
        for id in [Fixture.id, Fixture.id.uppercased(), "223e4567-e89b-12d3-a456-426614174000"] {
            _ = simulator.push { $0["apns-id"] = id }
        }
        let totals = simulator.log.totals(of: .apns)
        #expect(totals.delivered == 3 && totals.duplicates == 1 && totals.messages == 2)
        _ = simulator.send(["token": "t", "data": ["k": "v"]])
        _ = simulator.send(["token": "t", "data": ["k": "w"]])
        _ = simulator.send(["token": "t", "data": ["k": "v"]])
        #expect(simulator.log.totals(of: .fcm).duplicates == 1)
    }

    @Test func `Retry-After comes as a date when asked to`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"fcm","error_code":"UNAVAILABLE","retry_after":{"date_in":45}}"#)
        #expect(simulator.send(["token": "t"])?.headers["retry-after"] == "Thu, 01 Jan 2026 00:00:45 GMT")
    }

    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"), (1_772_323_200, "Sun, 01 Mar 2026 00:00:00 GMT"),
        ] as [(Int64, String)]) func `dates are HTTP's`(seconds: Int64, text: String)
    {
        #expect(HTTPDate.text(of: Timestamp(milliseconds: seconds * 1000)) == text)
    }

    @Test func `a 410 of some time ago says so`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns","status":410,"timestamp":{"ago_ms":5000}}"#)
        #expect(simulator.push()?.body?["timestamp"]?.int == Fixture.now.milliseconds - 5000)
    }

    @Test func `a GOAWAY names its last stream and takes its time`() throws {
        let acts = try Self.play(#""status":200,"goaway":{"last_stream":9,"code":11,"text":"x","pause_ms":20}"#).acts
        let goAway = GoAway(lastStream: .exactly(9), code: 11, debugData: Array("x".utf8), pause: .milliseconds(20))
        #expect(acts.last == .goAway(goAway))
    }
}
