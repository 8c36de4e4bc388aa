import HTTPTypes
import HummingbirdTesting
import NIOCore
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct PhoneWallTests {
    static func phones(_ simulator: Simulator) throws -> [JSONValue] {
        try simulator.wall.changes(after: 0, limit: 100).phones.map { phone in
            try RequestLogTests.json { phone.write(to: &$0) }
        }
    }

    static func bodies(_ phone: JSONValue?) -> [String?] {
        phone?["notifications"]?.array?.map { $0["body"]?.string } ?? []
    }

    @Test func `a collapse id replaces the earlier notification of the same app`() throws {
        let simulator = Fixture.simulator()
        for (text, collapse, topic) in [
            ("one", "c", Fixture.bundle), ("other", "c", "com.example.voip"), ("two", "c", Fixture.bundle),
            ("three", nil, Fixture.bundle),
        ] as [(String, String?, String)] {
            _ = simulator.push {
                $0.payload(#"{"aps":{"alert":"\#(text)"}}"#)
                $0["apns-collapse-id"] = collapse
                $0["apns-topic"] = topic
            }
        }
        let phone = try #require(try Self.phones(simulator).first)
        #expect(Self.bodies(phone) == ["three", "two", "other"])
        #expect(phone["notifications"]?.array?.map { $0["replaced"]?.int } == [0, 1, 0])
    }

    @Test func `Android replaces by tag; a data message is silent and replaces nothing`() throws {
        let simulator = Fixture.simulator()
        let android: JSONValue = ["notification": ["tag": "t", "channel_id": "news", "color": "#123456"]]
        _ = simulator.send(["token": "p", "notification": ["body": "one"], "android": android])
        _ = simulator.send(["token": "p", "notification": ["body": "two"], "android": android])
        _ = simulator.send(["token": "p", "data": ["k": "v"]])
        let phone = try #require(try Self.phones(simulator).first)
        let notes = phone["notifications"]?.array
        #expect(phone["platform"] == "android" && Self.bodies(phone) == [nil, "two"])
        #expect(notes?[0]["silent"] == true && notes?[0]["kind"] == "data" && notes?[0]["data"] == ["k": "v"])
        #expect(notes?[1]["group"] == "news" && notes?[1]["color"] == "#123456" && notes?[1]["replaced"] == 1)
    }

    @Test func `a clear command removes earlier notifications with its collapse ids, and is not shown`() async throws {
        let simulator = Fixture.simulator()
        func push(_ text: String, _ collapse: String) {
            _ = simulator.push {
                $0.payload(#"{"aps":{"alert":"\#(text)","badge":2}}"#)
                $0["apns-collapse-id"] = collapse
            }
        }
        for (text, collapse) in [("one", "a"), ("two", "a"), ("three", "b"), ("four", "c")] { push(text, collapse) }
        _ = simulator.push {
            $0.type(
                "background", topic: Fixture.bundle,
                #"{"aps":{"content-available":1},"data":{"heliograph_clear":["a","b","unknown"]}}"#)
            $0["apns-priority"] = "5"
        }
        // A later notification with a cleared id is shown.
        push("five", "b")
        let phone = try #require(try Self.phones(simulator).first)
        #expect(Self.bodies(phone) == ["five", "four"])
        #expect(phone["cleared"] == 2 && phone["badge"] == 2)
        for (token, text) in [("p", "[\"t\"]"), ("q", "[\"other\"]")] {
            let android: JSONValue = ["notification": ["tag": "t"]]
            _ = simulator.send(["token": .string(token), "notification": ["body": "x"], "android": android])
            _ = simulator.send(["token": .string(token), "data": ["heliograph_clear": .string(text)]])
        }
        try await ControlRoutesTests.withControl(simulator) { client async throws in
            for (path, shown, cleared) in [
                ("apns&token=\(Fixture.token.uppercased())", ["five", "four"], 2), ("fcm&token=p", [], 1),
                ("fcm&token=q", ["x"], 0),
                ("fcm&token=none", [], 0),
            ] as [(String, [String], Int64)] {
                let phone = try await ControlRoutesTests.ask(client, .get, "/shown?provider=\(path)").json
                #expect(phone?["shown"]?.array?.map { $0["body"]?.string } == shown, "\(path)")
                #expect(phone?["cleared"]?.int == cleared, "\(path)")
            }
            for query in ["", "?provider=apns", "?token=p", "?provider=oauth&token=p", "?provider=smoke&token=p"] {
                #expect(try await ControlRoutesTests.ask(client, .get, "/shown\(query)").status == .badRequest)
            }
        }
    }

    @Test func `an FCM message with only an apns block is shown as an iPhone`() throws {
        let simulator = Fixture.simulator()
        let apns: JSONValue = [
            "payload": ["aps": ["alert": ["title": "T", "subtitle": "S", "body": "B"], "badge": 3, "thread-id": "x"]],
            "headers": ["apns-collapse-id": "c"], "fcm_options": ["image": "https://example.com/i.png"],
        ]
        _ = simulator.send(["fid": "f1", "apns": apns])
        let phone = try #require(try Self.phones(simulator).first)
        let note = phone["notifications"]?.array?.first
        #expect(phone["platform"] == "ios" && phone["badge"] == 3 && phone["token"] == "f1")
        #expect(note?["subtitle"] == "S" && note?["group"] == "x" && note?["collapseID"] == "c")
        #expect(note?["image"] == "https://example.com/i.png")
    }

    @Test func `a Live Activity is one card per app, with its content state unchanged`() throws {
        let simulator = Fixture.simulator()
        for score in 1...3 {
            _ = simulator.push {
                $0.type(
                    "liveactivity", topic: Fixture.bundle + ".push-type.liveactivity",
                    #"{"aps":{"timestamp":1,"event":"update","content-state":{"score":\#(score)}}}"#)
            }
        }
        let phone = try #require(try Self.phones(simulator).first)
        let note = phone["notifications"]?.array?.first
        #expect(phone["notifications"]?.array?.count == 1 && note?["replaced"] == 2)
        #expect(note?["event"] == "update" && note?["state"] == ["score": 3] && note?["silent"] == false)
        #expect(phone["app"]?.string == Fixture.bundle)
    }

    @Test func `the badge is the last one that was set, and 0 clears it`() throws {
        let simulator = Fixture.simulator()
        for badge in [4, 0] { _ = simulator.push { $0.payload(#"{"aps":{"badge":\#(badge)}}"#) } }
        _ = simulator.push { $0.payload(#"{"aps":{"alert":"x"}}"#) }
        #expect(try Self.phones(simulator).first?["badge"] == 0)
    }

    @Test func `a rejected push does not reach the phone and is counted`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns","status":410}"#)
        _ = simulator.push()
        let phone = try #require(try Self.phones(simulator).first)
        #expect(phone["refused"] == 1 && phone["delivered"] == 0 && phone["notifications"] == [])
    }

    @Test func `changes are listed from a change number, and watchers are notified`() async throws {
        let simulator = Fixture.simulator()
        var watch = simulator.wall.watch().makeAsyncIterator()
        await watch.next()
        for token in ["aa", "bb", "aa"] { _ = simulator.push { $0.path = "/3/device/\(token)" } }
        await watch.next()
        let first = simulator.wall.changes(after: 0, limit: 1)
        #expect(first.phones.map(\.id.token) == ["bb"] && first.last == 2)
        let rest = simulator.wall.changes(after: first.last, limit: 10)
        #expect(rest.phones.map(\.id.token) == ["aa"] && rest.last == 3)
        simulator.forgetRequests()
        await watch.next()
        let none = simulator.wall.changes(after: 3, limit: 10)
        #expect(none.generation == first.generation + 1 && none.phones.isEmpty)
    }

    @Test func `a request that reaches the wall late is inserted in log order`() throws {
        let simulator = Fixture.simulator()
        for text in ["one", "two", "three"] { _ = simulator.push { $0.payload(#"{"aps":{"alert":"\#(text)"}}"#) } }
        let entries = simulator.log.requests(of: .apns)
        let wall = PhoneWall()
        var last = 0
        for (entry, bodies) in [
            (entries[1], ["two"]), (entries[0], ["two", "one"]), (entries[2], ["three", "two", "one"]),
        ] {
            wall.record(entry)
            let changes = wall.changes(after: last, limit: 10)
            last = changes.last
            let phone = try RequestLogTests.json { changes.phones.first?.write(to: &$0) }
            #expect(Self.bodies(phone) == bodies)
        }
    }

    @Test func `the least recently changed phones are removed, and a phone keeps its latest notifications`() {
        let simulator = Fixture.simulator()
        for index in 0..<1500 {
            _ = simulator.push { $0.path = "/3/device/\(String(0x1000 + index, radix: 16))" }
        }
        for _ in 0..<40 { _ = simulator.push { $0.path = "/3/device/ff" } }
        let phones = simulator.wall.changes(after: 0, limit: 5000).phones
        #expect(simulator.wall.count == PhoneWall.maximumPhones && phones.count == PhoneWall.maximumPhones)
        #expect(phones.last?.id.token == "ff" && phones.last?.cards.count == WallPhone.maximumDeliveries)
        #expect(!phones.contains { $0.id.token == "1000" })
    }

    @Test(arguments: ["/", "/phones", "/wall.css", "/wall.js"]) func `the page may only connect to its own port`(
        path: String
    ) async throws {
        try await ControlRoutesTests.withControl { client async throws in
            let response = try await client.execute(uri: path, method: .get)
            #expect(response.status == .ok && response.headers[.xContentTypeOptions] == "nosniff")
            let policy = response.headers[.contentSecurityPolicy] ?? ""
            #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"))
            #expect(!policy.contains("unsafe") && !policy.contains("http"))
            let page = String(buffer: response.body)
            #expect(!page.contains("innerHTML") && !page.contains("http://") && !page.contains("eval("))
        }
    }

    @Test func `a phone's payload cannot break out of the JSON event`() async throws {
        let simulator = Fixture.simulator()
        _ = simulator.push { $0.payload(#"{"aps":{"alert":"<script>\n\"x\""}}"#) }
        try await ControlRoutesTests.withControl(simulator) { client async throws in
            let response = try await client.execute(uri: "/wall", method: .get)
            #expect(response.headers[.contentType] == "application/json")
            let text = String(buffer: response.body)
            #expect(!text.contains("\n"), "an event is one line")
            let wall = try ProviderJSON.value(of: Array(text.utf8))
            #expect(Self.bodies(wall["phones"]?.array?.first) == ["<script>\n\"x\""])
            #expect(wall["remoteImages"] == false)
        }
    }
}
