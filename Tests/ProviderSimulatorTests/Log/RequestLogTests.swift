import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct RequestLogTests {
    static func append(
        _ log: RequestLog, token: String = "aa", status: Int = 200, _ change: (inout PushDraft) -> Void = { _ in }
    ) {
        let response = SimulatedResponse(
            actions: [.respond(Reply(status: status), bodyAfter: .zero)], target: token, app: Fixture.bundle,
            reason: status == 200 ? nil : "BadTopic", isDelivered: status == 200)
        log.append(Fixture.push(change), response, provider: .apns, environment: .production)
    }

    static func json(_ write: (inout JSONWriter) -> Void) throws -> JSONValue {
        var writer = JSONWriter()
        write(&writer)
        return try ProviderJSON.value(of: writer.bytes)
    }

    @Test func `the log keeps the latest requests and counts all`() {
        let log = RequestLog(capacity: 3)
        for _ in 1...5 { Self.append(log) }
        #expect(log.requests(of: .apns).map(\.sequence) == [3, 4, 5])
        #expect(log.requests(of: .apns, since: 3, limit: 1).map(\.sequence) == [4])
        #expect(log.requests(of: .apns, where: LogFilter(token: "bb")).isEmpty && log.requests(of: .fcm).isEmpty)
        #expect(log.totals(of: .apns).requests == 5)
        log.removeAll()
        #expect(log.requests(of: .apns).isEmpty && log.phones.isEmpty && log.totals(of: .apns).requests == 0)
        for _ in 1...4 { Self.append(log) }
        #expect(log.requests(of: .apns).map(\.sequence) == [7, 8, 9])
    }

    @Test func `totals count statuses and reasons`() {
        let log = RequestLog()
        Self.append(log)
        Self.append(log, status: 400)
        let totals = log.totals(of: .apns)
        #expect(totals.statuses == [200: 1, 400: 1] && totals.reasons == ["BadTopic": 1] && totals.delivered == 1)
    }

    @Test func `an entry contains the request as received`() throws {
        let log = RequestLog()
        let body = #"{"aps": {"alert":"x"}, "n": 1.50}"#
        Self.append(log) {
            $0.payload(body)
            $0.append(Header("x-a", "1"))
            $0.append(Header("x-a", "2", neverIndexed: true))
        }
        let entry = try #require(log.requests(of: .apns).first)
        var writer = JSONWriter()
        entry.write(to: &writer)
        #expect(String(decoding: writer.bytes, as: UTF8.self).contains("\"body\":" + body))
        let value = try ProviderJSON.value(of: writer.bytes)
        #expect(value["path"]?.string == "/3/device/\(Fixture.token)")
        #expect(value["headers"]?["apns-topic"]?.string == Fixture.bundle)
        #expect(value["headers"]?["x-a"] == "1, 2")
        #expect(value["neverIndexed"] == ["x-a"])
        #expect(value["status"] == 200 && value["token"] == "aa" && value["stream"] == 1)
        #expect(value["receivedAt"]?.int == Fixture.now.milliseconds)
    }

    @Test func `a body that is not JSON is logged as text`() throws {
        let log = RequestLog()
        Self.append(log) { $0.body = [0x7b, 0xff, 0x22] }
        Self.append(log) { $0.body = [] }
        let entries = log.requests(of: .apns)
        #expect(try Self.json { entries[0].write(to: &$0) }["body"]?.string == "{\u{fffd}\"")
        #expect(try Self.json { entries[1].write(to: &$0) }["body"] == .null)
    }

    @Test func `a phone's last notification is shown as on its platform`() throws {
        let simulator = Fixture.simulator()
        _ = simulator.push {
            $0.payload(
                #"{"aps":{"alert":{"title":"T","subtitle":"S","body":"B"},"badge":3,"sound":"default"},"k":"v"}"#)
        }
        _ = simulator.push {
            $0.path = "/3/device/aa"
            $0.type("background", #"{"aps":{"content-available":1},"n":1}"#)
            $0["apns-priority"] = "5"
        }
        _ = simulator.send([
            "token": "t", "notification": ["title": "General", "body": "B"],
            "android": ["notification": ["title": "Android", "tag": "x"]],
        ])
        let phones = simulator.log.phones
        #expect(phones.map(\.id.token) == ["t", "aa", Fixture.token])
        let shown = try phones.map { try #require($0.last.flatMap(ShownNotification.init)) }
        #expect(shown[0].title == "Android" && shown[0].body == "B" && shown[0].collapseID == "x")
        #expect(shown[1].isSilent && shown[1].data == ["n": 1])
        #expect(shown[2].title == "T" && shown[2].subtitle == "S" && shown[2].badge == 3 && !shown[2].isSilent)
        #expect(try Self.json { phones[1].write(to: &$0) }["last"]?["silent"] == true)
    }

    @Test func `a phone receives only accepted pushes`() throws {
        let simulator = Fixture.simulator()
        _ = simulator.push { $0.payload(#"{"aps":{"alert":"first"}}"#) }
        try simulator.play(#"{"provider":"apns","status":410}"#)
        _ = simulator.push { $0.payload(#"{"aps":{"alert":"second"}}"#) }
        let phone = try #require(simulator.log.phones.first)
        #expect(phone.delivered == 1 && phone.refused == 1)
        #expect(phone.last.flatMap(ShownNotification.init)?.body == "first")
    }
}
