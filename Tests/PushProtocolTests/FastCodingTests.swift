import FoundationEssentials
import Testing
import TestSupport

@testable import PushProtocol

/// The fast encoders and decoders agree with Codable, or return `nil`.
struct FastCodingTests {
    @Test func `the fast decoder of a push agrees with Codable`() throws {
        var random = SplitMix(seed: 7)
        for _ in 0..<400 {
            let push = Push.random(&random)
            let body = try WireCoding.encode(General(push))
            #expect(Push.fastDecoded(body) == push)
        }
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
            #expect(Push.fastDecoded(body) == push)
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
                #expect(Push.fastDecoded(Array(shorter.utf8)) == nil, "\(column)")
            }
        }
    }

    /// As a service of another version could write it.
    @Test func `unknown members in sorted order are skipped, and duplicates are not accepted`() throws {
        var random = SplitMix(seed: 18)
        let push = Push.random(&random)
        let text = String(decoding: try WireCoding.encode(General(push)), as: UTF8.self)
        func read(_ text: String) -> Push? { Push.fastDecoded(Array(text.utf8)) }
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
        #expect(read(text + " ") == nil && read(text + "}") == nil)
    }

    @Test func `most contents stay encoded, and decode to an equal value`() throws {
        var random = SplitMix(seed: 17)
        var left = 0
        for _ in 0..<400 {
            var push = Push.random(&random)
            (push.content.apns, push.content.fcm) = (nil, nil)
            let read = try #require(Push.fastDecoded(try WireCoding.encode(General(push))))
            guard let text = read.encodedContent else { continue }
            left += 1
            #expect(text.content == push.content)
        }
        #expect(left > 50)
    }

    @Test(
        arguments: [
            #"{"silent":false,"title": "a"}"#, #"{"silent":false,"title":"\u00e9"}"#, #"{"silent":false,"title":"\/"}"#,
            #"{"data":{"b":1,"a":2},"silent":false}"#, #"{"data":{"é":1},"silent":false}"#,
            #"{"badge":-0,"silent":false}"#, #"{"apns":{},"silent":false}"#, #"{"silent":false,"body":"a"}"#,
            #"{"fcm":null,"silent":false}"#, #"{"silent":false,"zoo":1,"new":1}"#,
        ])
    func `contents in other than canonical form are decoded`(content: String) throws {
        let push = try #require(try Self.push(content))
        #expect(push.encodedContent == nil)
    }

    @Test(arguments: [
        #"{"silent":false,"title":1}"#, #"{"title":"a"}"#, #"{"silent":false,"silent":true}"#,
        #"{"silent":false,"interruptionLevel":"loud"}"#, #"{"silent":null}"#, #"{"silent":false,"data":[]}"#,
        #"{"silent":false,"data":{"a":1,"a":2}}"#, #"{"silent":false,"badge":"1"}"#, #"{"silent":false"#,
        "{\"silent\":false,\"title\":\"\u{1}\"}",
    ])
    func `an invalid content is rejected`(content: String) throws {
        #expect(try Self.push(content) == nil)
    }

    @Test func `the nesting limit of a content equals that of Codable`() throws {
        for levels in 26...32 {
            let deep = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
            let body = try Self.body(#"{"data":{"a":\#(deep)},"silent":false}"#)
            let general = try? WireCoding.decode(General<Push>.self, from: body).message
            #expect(Push.fastDecoded(body) == general, "\(levels) levels")
        }
    }

    private static func body(_ content: String) throws -> [UInt8] {
        var random = SplitMix(seed: 3)
        var push = Push.random(&random)
        push.content = Content(title: "@", silent: true)
        let text = String(decoding: try WireCoding.encode(General(push)), as: UTF8.self)
        return Array(text.replacing(#"{"silent":true,"title":"@"}"#, with: content).utf8)
    }

    private static func push(_ content: String) throws -> Push? { Push.fastDecoded(try body(content)) }

    @Test func `for damaged bodies, the fast decoder agrees with Codable or returns nil`() throws {
        var random = SplitMix(seed: 8)
        var read = 0
        for _ in 0..<6000 {
            var body = try WireCoding.encode(General(Push.random(&random)))
            for _ in 0...Int.random(in: 0..<3, using: &random) { body.damage(&random) }
            guard let push = Push.fastDecoded(body) else { continue }
            read += 1
            #expect(try WireCoding.decode(General<Push>.self, from: body).message == push)
        }
        // Damage inside strings leaves a valid push; this test needs some.
        #expect(read > 300)
    }

    @Test func `the fast decoder of any value agrees with Codable`() throws {
        var random = SplitMix(seed: 12)
        var read = 0
        for round in 0..<3000 {
            var body = try WireCoding.encode(General(Push.random(&random)))
            if round.isMultiple(of: 2) { body.damage(&random) }
            guard let value = JSONValue.fastDecoded(body) else { continue }
            read += 1
            // Decoding an array always uses `JSONDecoder`.
            let wrapped = [UInt8(ascii: "[")] + body + [UInt8(ascii: "]")]
            #expect(try WireCoding.decode([JSONValue].self, from: wrapped) == [value])
        }
        #expect(read > 1500)
    }

    @Test(arguments: [
        #"{"a":1,"a":2}"#, "[1.5]", "[1e3]", "[01]", "[-]", #"["\ud83d"]"#, #"["\x"]"#, "[1,]", #"{"a":}"#,
        "[123456789012345678901]", "nul", "", "[", #"["#, "{\"a\" 1}", "[\"a\u{1}\"]",
    ])
    func `input that is not canonical throws`(text: String) {
        #expect(throws: JSONReader.NotCanonical.self) { try Self.value(text) }
    }

    @Test(
        arguments: [
            (
                #" { "a" : [ 1 , -2 , true , false , null ] , "b" : { } } "#,
                ["a": [1, -2, true, false, nil], "b": [:]]
            ),
            (#"["\"\\\/\n\r\t\b\f\u00e9\u20ac", "é€😀", ""]"#, ["\"\\/\n\r\t\u{8}\u{c}é€", "é€😀", ""]),
            (#"["\ud83d\ude00"]"#, ["😀"]), ("[]", []), ("0", 0), ("-0", 0),
            ("999999999999999999", 999_999_999_999_999_999),
        ] as [(String, JSONValue)])
    func `common input is read`(text: String, value: JSONValue) throws {
        #expect(try Self.value(text) == value)
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
        #expect(throws: JSONReader.NotCanonical.self) { try Self.value(deep(WireCoding.maximumDepth + 1)) }
    }

    @Test func `the fast encoder of outcomes agrees with Codable`() throws {
        var random = SplitMix(seed: 9)
        var tables = 0
        for _ in 0..<600 {
            let outcomes = Outcomes.random(&random)
            let isTable = AcceptedTable.canRepresent(outcomes.outcomes)
            // A table with a string that needs escaping uses `JSONEncoder`.
            guard let written = outcomes.fastEncoded() else {
                #expect(isTable)
                continue
            }
            if isTable { tables += 1 }
            #expect(written == (try WireCoding.encode(General(outcomes))))
            #expect(try Outcomes.decode(wireBody: written) == outcomes)
        }
        #expect(tables > 20)
    }

    @Test func `the fast encoder of a push agrees with Codable`() throws {
        var random = SplitMix(seed: 10)
        var written = 0
        for _ in 0..<600 {
            let push = Push.random(&random)
            let body = push.fastEncoded()
            // A trace or token that needs escaping uses `JSONEncoder`.
            #expect(
                (body != nil)
                    == (push.trace.needsNoEscaping && push.targets.allSatisfy { $0.token.secret.needsNoJSONEscaping }))
            guard let body else { continue }
            written += 1
            #expect(body == (try WireCoding.encode(General(push))))
        }
        #expect(written > 100)
    }

    @Test func `the capacity suffices for the largest push`() throws {
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
        #expect(try #require(push.fastEncoded()) == WireCoding.encode(General(push)))
    }

    @Test func `the fast decoder of a notification agrees with Codable`() throws {
        var random = SplitMix(seed: 11)
        var (read, damaged) = (0, 0)
        for round in 0..<3000 {
            let notification = PushProtocol.Notification.random(&random)
            var body = try WireCoding.encode(General(notification))
            if round < 300 {
                #expect(PushProtocol.Notification.fastDecoded(body) == notification)
                continue
            }
            for _ in 0...Int.random(in: 0..<3, using: &random) { body.damage(&random) }
            damaged += 1
            guard let quick = PushProtocol.Notification.fastDecoded(body) else { continue }
            read += 1
            #expect(try WireCoding.decode(General<PushProtocol.Notification>.self, from: body).message == quick)
        }
        // Damage inside strings leaves a valid notification; this test needs some.
        #expect(read > 100 && damaged == 2700)
    }

    @Test func `every character is escaped as by Codable`() throws {
        for scalar in (0..<0x300).compactMap(Unicode.Scalar.init) {
            let text = "a\(Character(scalar))z/"
            var writer = JSONByteWriter()
            writer.string(text)
            #expect(writer.bytes == (try WireCoding.encode(text)), "U+\(String(scalar.value, radix: 16))")
        }
        for number in [0, 1, 9, 10, 1_767_225_600_000, Int64.max, -1, Int64.min] {
            var writer = JSONByteWriter()
            writer.integer(number)
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

    private static func value(_ text: String) throws(JSONReader.NotCanonical) -> JSONValue {
        let bytes = Array(text.utf8)
        return try bytes.withUnsafeBufferPointer { (bytes) throws(JSONReader.NotCanonical) in
            var reader = JSONReader(bytes)
            let value = try reader.value()
            try reader.end()
            return value
        }
    }
}

/// A message with `type` and `version`, encoded with Codable only.
private struct General<Message: WireMessage>: Codable {
    var message: Message

    init(_ message: Message) { self.message = message }

    private enum CodingKeys: String, CodingKey { case type, version }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard try container.decode(String.self, forKey: .type) == Message.messageType,
            (1...Message.messageVersion).contains(try container.decode(Int.self, forKey: .version))
        else { throw WireError.notJSON("another message") }
        message = try Message(from: decoder)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Message.messageType, forKey: .type)
        try container.encode(Message.messageVersion, forKey: .version)
        try message.encode(to: encoder)
    }
}

extension [UInt8] {
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
