import PushProtocol
import Testing

@testable import ProviderSimulator

/// Faults in the middle of a response, and their log entries.
@Suite struct TransportFaultTests {
    static func play(_ members: String) throws -> (actions: [WireAction], entry: LoggedRequest?, totals: RequestTotals)
    {
        let simulator = Fixture.simulator()
        _ = simulator.push()
        simulator.log.removeAll()
        try simulator.play(#"{"provider":"apns",\#(members)}"#)
        let actions = simulator.respondAPNs(Fixture.push(), in: .production)
        return (actions, simulator.log.requests(of: .apns).last, simulator.log.totals(of: .apns))
    }

    static let empty = Reply(status: 200, headers: [Header("apns-id", Fixture.id)])

    @Test(
        arguments: [
            (#""reset":2"#, [.reset(code: 2)]), (#""close":true"#, [.closeConnection]),
            (#""stall":true"#, [.stall]), (#""reset":2,"after":"headers""#, [.begin(empty), .reset(code: 2)]),
            (#""silence":true,"after":"headers""#, [.begin(empty), .silence]),
            (#""drop":true,"after":"answer""#, [.respond(empty, bodyAfter: .zero), .dropConnection]),
        ] as [(String, [WireAction])]) func `a response breaks off at the scripted point`(
            members: String, actions: [WireAction]
        ) throws
    {
        #expect(try Self.play(members).actions == actions)
    }

    @Test func `a request that broke before its response is not accepted, unless scripted so`() throws {
        let lost = try Self.play(#""drop":true"#)
        #expect(lost.entry?.response.isDelivered == false && lost.entry?.response.fault == "drop")
        #expect(lost.totals.statuses == [0: 1] && lost.totals.faults == ["drop": 1])
        let taken = try Self.play(#""drop":true,"accepted":true,"name":"cut cable""#)
        #expect(taken.entry?.response.isDelivered == true && taken.totals.faults == ["cut cable": 1])
        let said = try Self.play(#""reset":8,"after":"headers","status":410,"reason":"Unregistered""#)
        #expect(said.entry?.response.isDelivered == false && said.entry?.response.reason == "Unregistered")
        #expect(said.entry?.response.status == 410 && said.entry?.response.fault == "reset 8 after headers")
    }

    @Test func `a resent push that was accepted is a duplicate by its id`() throws {
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

    @Test func `Retry-After can be a date`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"fcm","error_code":"UNAVAILABLE","retry_after":{"date_in":45}}"#)
        #expect(simulator.send(["token": "t"])?.headers["retry-after"] == "Thu, 01 Jan 2026 00:00:45 GMT")
    }

    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"), (1_772_323_200, "Sun, 01 Mar 2026 00:00:00 GMT"),
        ] as [(Int64, String)]) func `dates have the HTTP format`(seconds: Int64, text: String)
    {
        #expect(HTTPDate.text(of: Timestamp(milliseconds: seconds * 1000)) == text)
    }

    @Test func `a 410 with ago_ms has an earlier timestamp`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns","status":410,"timestamp":{"ago_ms":5000}}"#)
        #expect(simulator.push()?.body?["timestamp"]?.int == Fixture.now.milliseconds - 5000)
    }

    @Test func `a GOAWAY has its last stream and pause`() throws {
        let actions = try Self.play(#""status":200,"goaway":{"last_stream":9,"code":11,"text":"x","pause_ms":20}"#)
            .actions
        let goAway = GoAway(lastStream: .exactly(9), code: 11, debugData: Array("x".utf8), pause: .milliseconds(20))
        #expect(actions.last == .goAway(goAway))
    }
}
