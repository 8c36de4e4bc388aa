import FoundationEssentials
import Testing
import TestSupport

@testable import PushProtocol

/// The readers and writers of messages on the hot path. Foundation is the reference for the JSON.
struct FastCodingTests {
    @Test func `a push is read as written, and from any other order and white space`() throws {
        var random = SplitMix(seed: 7)
        for _ in 0..<400 {
            let push = Push.random(&random)
            let body = try push.wireBody()
            #expect(body == (try body.sorted()))
            #expect(Push.canonical(body) == push)
            #expect(try Push.decode(wireBody: body.loose()) == push)
        }
    }

    @Test func `outcomes are read as written, and from any other order and white space`() throws {
        var random = SplitMix(seed: 9)
        var tables = 0
        for _ in 0..<600 {
            let outcomes = Outcomes.random(&random)
            let body = try outcomes.wireBody()
            if String(decoding: body, as: UTF8.self).hasPrefix(#"{"accepted":"#) { tables += 1 }
            #expect(body == (try body.sorted()))
            #expect(Outcomes.canonical(body) == outcomes)
            #expect(try Outcomes.decode(wireBody: body.loose()) == outcomes)
        }
        #expect(tables > 100)
    }

    @Test func `a column has one value for all targets or one for each, and no other number`() throws {
        var random = SplitMix(seed: 19)
        var push = Push.random(&random)
        let targets = (0..<3).map { _ in Push.Target.random(&random) }
        for shares in [true, false] {
            push.targets = targets
            for row in targets.indices where shares {
                push.targets[row].notification = targets[0].notification
                push.targets[row].registeredAt = targets[0].registeredAt
                push.targets[row].badge = 7
                push.targets[row].address = .fid
                push.targets[row].owner = UserHash(rawValue: 5)
                push.targets[row].fallback = DeviceToken(secret: "f")
            }
            let body = try push.wireBody()
            #expect(Push.canonical(body) == push)
            let text = String(decoding: body, as: UTF8.self)
            #expect(text.contains(#""addresses":["fid"],"badges":[7],"#) == shares)
            for column in [
                "addresses", "badges", "devices", "fallbacks", "notifications", "owners", "registeredAt", "tokens",
            ] {
                let begin = "\"\(column)\":["
                guard let range = text.firstRange(of: begin) else { continue }
                // Removes the first value, which leaves two of three, or none.
                let rest = text[range.upperBound...]
                let next = rest.firstIndex { $0 == "," || $0 == "]" }!
                let shorter =
                    text[..<range.upperBound] + (rest[next] == "," ? rest[rest.index(after: next)...] : rest[next...])
                #expect(Push.canonical(Array(shorter.utf8)) == nil, "\(column)")
            }
        }
    }

    /// As a service of another version could write it.
    @Test func `unknown members in sorted order are skipped, and duplicates are not canonical`() throws {
        var random = SplitMix(seed: 18)
        let push = Push.random(&random)
        let text = String(decoding: try push.wireBody(), as: UTF8.self)
        func read(_ text: String) -> Push? { Push.canonical(Array(text.utf8)) }
        func first(_ new: String) -> String { "{" + new + "," + text.dropFirst() }
        func last(_ new: String) -> String { text.dropLast() + "," + new + "}" }
        #expect(read(first(#""aa":[{"b":[]},"x"]"#)) == push)
        #expect(read(text.replacing(#","lane":"#, with: #","extra":{},"fresh":"é","lane":"#)) == push)
        #expect(read(text.replacing(#""trace":{"#, with: #""trace":{"a":1,"b":{},"#)) == push)
        #expect(read(last(#""zoo":null"#)) == push)
        #expect(read(last(#""version":1"#)) == nil)
        #expect(read(last(#""extra":1"#)) == nil)
        #expect(read(text.replacing(#","lane":"#, with: #","fresh":1,"extra":2,"lane":"#)) == nil)
        #expect(read(text.replacing(#","lane":"#, with: #","extra":1,"extra":1,"lane":"#)) == nil)
        #expect(read(text.replacing(#","lane":"#, with: #","lane":"bulk","lane":"#)) == nil)
        #expect(read("{}") == nil && read("}") == nil && read("[]") == nil && read("") == nil)
        #expect(read(text + " ") == push && read(text + "}") == nil)
    }

    @Test func `most contents stay encoded, and decode to an equal value`() throws {
        var random = SplitMix(seed: 17)
        var left = 0
        for _ in 0..<400 {
            var push = Push.random(&random)
            (push.content.apns, push.content.fcm) = (nil, nil)
            let read = try #require(Push.canonical(try push.wireBody()))
            guard let text = read.encodedContent else { continue }
            left += 1
            #expect(text.content == push.content)
        }
        #expect(left > 50)
    }

    @Test(
        arguments: [
            #"{"data":{"a": 1},"silent":false}"#,
            #"{"silent":false,"title":"\u00e9"}"#, #"{"silent":false,"title":"\/"}"#,
            #"{"data":{"b":1,"a":2},"silent":false}"#, #"{"data":{"é":1},"silent":false}"#,
            #"{"badge":5,"data":{"a":-0},"silent":false}"#, #"{"data":{"a":1.5},"silent":false}"#,
            #"{"apns":{},"silent":false}"#, #"{"silent":false,"body":"a"}"#,
            #"{"fcm":null,"silent":false}"#, #"{"silent":false,"zoo":1,"new":1}"#,
        ])
    func `contents in other than canonical form are decoded`(content: String) throws {
        let push = try Push.decode(wireBody: try Self.body(content))
        #expect(try push.content == JSONDecoder().decode(Content.self, from: Data(content.utf8)))
        #expect(Push.canonical(try Self.body(content))?.encodedContent == nil)
    }

    @Test(arguments: [
        #"{"silent":false,"title":1}"#, #"{"title":"a"}"#,
        #"{"silent":false,"interruptionLevel":"loud"}"#, #"{"silent":null}"#, #"{"silent":false,"data":[]}"#,
        #"{"silent":false,"badge":"1"}"#, #"{"silent":false"#,
        "{\"silent\":false,\"title\":\"\u{1}\"}",
    ])
    func `an invalid content is rejected`(content: String) throws {
        let body = try Self.body(content)
        #expect(throws: WireError.self) { try Push.decode(wireBody: body) }
    }

    @Test func `the nesting limit of a content is that of the body`() throws {
        // The push, its content and `data` are three levels.
        for levels in 26...32 {
            let deep = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
            let body = try Self.body(#"{"data":{"a":\#(deep)},"silent":false}"#)
            let result = Result { () throws(WireError) in try Push.decode(wireBody: body) }
            #expect(Push.canonical(body) == (try? result.get()), "\(levels) levels")
            #expect((try? result.get()) != nil || result == .failure(.tooDeep(limit: WireCoding.maximumDepth)))
            #expect(((try? result.get()) != nil) == (levels + 3 <= WireCoding.maximumDepth), "\(levels) levels")
        }
    }

    private static func body(_ content: String) throws -> [UInt8] {
        var random = SplitMix(seed: 3)
        var push = Push.random(&random)
        push.content = Content(title: "@", silent: true)
        let text = String(decoding: try push.wireBody(), as: UTF8.self)
        return Array(text.replacing(#"{"silent":true,"title":"@"}"#, with: content).utf8)
    }

    @Test func `a damaged body is read like its canonical form, or rejected`() throws {
        var random = SplitMix(seed: 8)
        var read = 0
        for _ in 0..<6000 {
            var body = try Push.random(&random).wireBody()
            for _ in 0...Int.random(in: 0..<3, using: &random) { body.damage(&random) }
            let push = try? Push.decode(wireBody: body)
            #expect(push == (try? Push.decode(wireBody: body.sorted())))
            if push != nil { read += 1 }
        }
        // Damage inside strings leaves a valid push; this test needs some.
        #expect(read > 300)
    }

    @Test func `any value is read like by Foundation`() throws {
        var random = SplitMix(seed: 12)
        var read = 0
        for round in 0..<3000 {
            var body = try Push.random(&random).wireBody()
            if round.isMultiple(of: 2) { body.damage(&random) }
            let value = try? WireCoding.decode(JSONValue.self, from: body)
            #expect(value == (try? JSONDecoder().decode(JSONValue.self, from: Data(body))))
            if value != nil { read += 1 }
        }
        #expect(read > 1500)
    }

    @Test(arguments: [
        "[01]", "[-]", "[1.]", "[.5]", "[1e]", "[+1]", "[1e400]", "[0x1]", "[NaN]", #"["\ud83d"]"#, #"["\x"]"#,
        #"{"a":}"#, "nul", "", "[", #"["#, "{\"a\" 1}", "[\"a\u{1}\"]", "[1] 2",
    ])
    func `text that is not JSON throws, like with Foundation`(text: String) {
        #expect(throws: JSONReader.Unreadable.self) { try Self.value(text) }
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)) }
    }

    @Test func `a trailing comma is left to Foundation, which accepts it`() throws {
        #expect(throws: JSONReader.Unreadable.self) { try Self.value("[1,]") }
        #expect(try WireCoding.decode(JSONValue.self, from: Array("[1,]".utf8)) == [1])
    }

    @Test(
        arguments: [
            (
                #" { "a" : [ 1 , -2 , true , false , null ] , "b" : { } } "#,
                ["a": [1, -2, true, false, nil], "b": [:]]
            ),
            (#"["\"\\\/\n\r\t\b\f\u00e9\u20ac", "é€😀", ""]"#, ["\"\\/\n\r\t\u{8}\u{c}é€", "é€😀", ""]),
            (#"["\ud83d\ude00"]"#, ["😀"]), ("[]", []), ("0", 0), ("-0", 0),
            ("999999999999999999", 999_999_999_999_999_999), ("9223372036854775807", .int(.max)),
            ("-9223372036854775808", .int(.min)), ("9223372036854775808", 9_223_372_036_854_775_808.0),
            ("[1.5,-0.25,1e3,1.0,2E-2,1.5e300]", [1.5, -0.25, 1000, 1, 0.02, 1.5e300]),
            (
                "[1e18,-1.5e+18,9007199254740993.0,0.0,-0.0,10e-1,1e19]",
                [
                    1_000_000_000_000_000_000, -1_500_000_000_000_000_000, 9_007_199_254_740_993, 0, 0, 1, 1e19,
                ]
            ),
            (#"{"a":1,"a":2,"\u0062":3}"#, ["a": 1, "b": 3]),
        ] as [(String, JSONValue)])
    func `all JSON is read, like by Foundation`(text: String, value: JSONValue) throws {
        #expect(try Self.value(text) == value)
        #expect(try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)) == value)
    }

    @Test(
        arguments: [
            (#"{"name":"a/b"}"#, "a/b"), ("{\n  \"x\": [1.5],\n  \"name\": \"\\ud83d\\ude00\"\n}\n", "😀"), ("{}", nil),
            (#"{"name":5}"#, nil), (#"{"name":null}"#, nil), (#"{"n":"a","name":"b"}"#, "b"), (#"["name"]"#, nil),
            ("", nil),
            (#"{"name":"projects/"#, nil), (#"{"name":"a"} x"#, nil),
        ] as [(String, String?)])
    func `one string member is the same as in the decoded object`(body: String, text: String?) {
        let body = Array(body.utf8)
        #expect(WireCoding.text(of: "name", in: body) == text)
        #expect((try? WireCoding.decode(JSONValue.self, from: body))?["name"]?.string == text)
    }

    @Test func `nesting is limited`() throws {
        let deep = { (levels: Int) in
            String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        }
        #expect(throws: Never.self) { try Self.value(deep(WireCoding.maximumDepth)) }
        #expect(throws: JSONReader.Unreadable.self) { try Self.value(deep(WireCoding.maximumDepth + 1)) }
    }

    @Test func `the largest push is read as written`() throws {
        var random = SplitMix(seed: 20)
        let targets = (0..<Push.maximumTargets).map { row in
            Push.Target(
                device: .random(&random), token: DeviceToken(secret: "t"),
                address: row.isMultiple(of: 2)
                    ? Push.Address.allCases.max { $0.rawValue.count < $1.rawValue.count } : nil,
                notification: .random(&random), badge: row.isMultiple(of: 2) ? .min : nil,
                registeredAt: Timestamp(milliseconds: row == 0 ? .max : .min))
        }
        let push = Push(
            trace: Trace(id: .random(&random), correlation: "c", causation: "c", traceparent: "00-1-2-01"),
            app: AppID(rawValue: "a")!, provider: .apns, environment: .development, lane: .interactive,
            content: Content(),
            expiresAt: Timestamp(milliseconds: .min), delivery: .atMostOnce, targets: targets)
        #expect(try Push.decode(wireBody: push.wireBody()) == push)
    }

    @Test func `the reader of a notification agrees with Codable`() throws {
        var random = SplitMix(seed: 11)
        var (read, damaged) = (0, 0)
        for round in 0..<3000 {
            let notification = PushProtocol.Notification.random(&random)
            var body = try notification.wireBody()
            if round < 300 {
                #expect(PushProtocol.Notification.canonical(body) == notification)
                continue
            }
            for _ in 0...Int.random(in: 0..<3, using: &random) { body.damage(&random) }
            damaged += 1
            guard let quick = PushProtocol.Notification.canonical(body) else { continue }
            read += 1
            #expect(try PushProtocol.Notification.decodeWithCodable(body) == quick)
        }
        // Damage inside strings leaves a valid notification; this test needs some.
        #expect(read > 100 && damaged == 2700)
    }

    @Test func `every character is escaped as by Codable`() throws {
        for scalar in (0..<0x300).compactMap(Unicode.Scalar.init) {
            let text = "a\(Character(scalar))z/"
            var writer = ByteWriter()
            writer.string(text)
            #expect(writer.bytes == (try WireCoding.encode(text)), "U+\(String(scalar.value, radix: 16))")
        }
        for number in [0, 1, 9, 10, 1_767_225_600_000, Int64.max, -1, Int64.min] {
            var writer = ByteWriter()
            writer.put(number)
            #expect(writer.bytes == Array("\(number)".utf8))
        }
    }

    @Test func `UUIDs are read in either case and no other form`() throws {
        let id = UUID(uuidString: "6F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A")!
        func read(_ text: String) -> UUID? { Array(text.utf8).withUnsafeBufferPointer(Hexadecimal.uuid) }
        #expect(read(id.uuidString) == id)
        #expect(read(id.uuidString.lowercased()) == id)
        for bad in ["", "6F1F8F5E53F25B0C9D0A0B1DE15C7C3A", "6F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3G"] {
            #expect(read(bad) == nil)
        }
    }

    private static func value(_ text: String) throws(JSONReader.Unreadable) -> JSONValue {
        let bytes = Array(text.utf8)
        return try bytes.withUnsafeBufferPointer { (bytes) throws(JSONReader.Unreadable) in
            var reader = JSONReader(bytes)
            let value = try reader.value()
            try reader.end()
            return value
        }
    }
}

extension CanonicalMessage {
    /// Reads a body in canonical form only.
    static func canonical(_ body: [UInt8]) -> Self? {
        JSONReader.read(body) { (reader) throws(JSONReader.Unreadable) in try Self(&reader, of: body) }
    }
}

extension [UInt8] {
    /// The same JSON in the canonical form, by Foundation.
    fileprivate func sorted() throws -> [UInt8] {
        try WireCoding.encode(JSONDecoder().decode(JSONValue.self, from: Data(self)))
    }

    /// The same JSON with other white space and in another order, by Foundation.
    fileprivate func loose() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .prettyPrinted
        return Array(try encoder.encode(JSONDecoder().decode(JSONValue.self, from: Data(self))))
    }

    /// Changes, removes, duplicates or swaps some bytes.
    fileprivate mutating func damage(_ random: inout SplitMix) {
        let place = Int.random(in: indices, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: self[place] = UInt8.random(in: 0...255, using: &random)
        case 1: self[place] = Array(#"{}[],:"\0123456789.eE- tfn"#.utf8).randomElement(using: &random)!
        case 2: remove(at: place)
        case 3: insert(self[place], at: place)
        case 4: removeLast(Swift.min(count - 1, 3))
        default: swapAt(place, Int.random(in: indices, using: &random))
        }
    }
}
