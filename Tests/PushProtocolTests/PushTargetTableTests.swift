import FoundationEssentials
import Testing

@testable import PushProtocol

/// Further forms of the target table.
struct PushTargetTableTests {
    private static let columns = [
        "devices": #"["6F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A","7F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A"]"#,
        "notifications": #"["8F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A"]"#, "registeredAt": "[5]", "tokens": #"["a","b"]"#,
    ]

    private static func body(_ targets: String, version: Int = 2) -> [UInt8] {
        Array(
            (#"{"app":"demo","content":{"silent":true},"environment":"production","lane":"bulk","provider":"fcm","targets":"#
                + targets
                + #","trace":{"causation":"c","correlation":"c","id":"9F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A"},"#
                + #""type":"heliograph.push","version":\#(version)}"#).utf8)
    }

    private static func table(_ changes: [String: String?] = [:]) -> String {
        let columns = columns.merging(changes.compactMapValues { $0 }) { $1 }.filter { changes[$0.key] != .some(nil) }
        return object(columns.sorted { $0.key < $1.key })
    }

    private static func object(_ members: [(key: String, value: String)]) -> String {
        "{" + members.map { #""\#($0.key)":\#($0.value)"# }.joined(separator: ",") + "}"
    }

    @Test(arguments: [
        table(), table(["badges": "null"]), table(["addresses": "null"]), table(["badges": "[null]"]),
        table(["badges": "[1,null]", "addresses": #"["fid"]"#]), table(["extra": #"{"a":[1]}"#]), table(["zoo": "0"]),
        table(["registeredAt": "[5,6]"]), table(["fallbacks": "null", "owners": "null"]),
        table(["fallbacks": #"[null,"c"]"#, "owners": "[7]"]), table(["fallbacks": #"["c"]"#, "owners": "[null,8]"]),
    ])
    func `tables with two targets`(targets: String) throws {
        let body = Self.body(targets)
        let push = try Push.decode(wireBody: body)
        #expect(push.targets.map(\.token.secret) == ["a", "b"])
        #expect(Push.canonical(body) == push)
    }

    @Test(arguments: [
        table(["badges": "[]"]), table(["badges": "[1,2,3]"]), table(["badges": "1"]), table(["addresses": #"["x"]"#]),
        table(["devices": "null"]), table(["devices": nil]), table(["tokens": #"["a"]"#]), table(["tokens": nil]),
        table(["notifications": "null"]), table(["notifications": nil]), table(["registeredAt": "[]"]),
        table(["owners": "[1,2,3]"]), table(["fallbacks": "[3]"]), table(["owners": #"["a"]"#]),
        table(["registeredAt": "[99999999999999999999]"]), "3", "null", "{}", #"[{"device":1}]"#,
    ])
    func `invalid tables`(targets: String) {
        let body = Self.body(targets)
        #expect(throws: WireError.self) { try Push.decode(wireBody: body) }
    }

    @Test func `unsorted columns are read, and the first of duplicate columns counts`() throws {
        let backwards = Self.object(Self.columns.sorted { $0.key > $1.key })
        #expect(Push.canonical(Self.body(backwards)) == nil)
        let push = try Push.decode(wireBody: Self.body(Self.table()))
        #expect(try Push.decode(wireBody: Self.body(backwards)) == push)
        let twice = Self.body("{" + #""tokens":["c","d"],"# + Self.table().dropFirst())
        #expect(Push.canonical(twice) == nil)
        #expect(try Push.decode(wireBody: twice).targets.map(\.token.secret) == ["c", "d"])
    }

    @Test(arguments: [
        (table(["owners": "[1,2,3]"]), "targets.owners"), (table(["badges": "[1,2,3]"]), "targets.badges"),
        (table(["tokens": nil]), "targets.tokens is missing"), (table(["devices": nil]), "targets.devices is missing"),
        (table(["addresses": #"["x"]"#]), "targets.addresses"), ("3", "targets"),
        (#"[{"device":1}]"#, "targets.device"),
    ])
    func `the error of an invalid table names the column`(targets: String, name: String) throws {
        let error = #expect(throws: WireError.self) { try Push.decode(wireBody: Self.body(targets)) }
        #expect("\(try #require(error))".hasPrefix(name))
    }

    /// The JSON type selects the form, regardless of the version. Unknown versions are rejected.
    @Test func `a list and a table are read in either version`() throws {
        let list = #"""
            [{"device":"6F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A","notification":"8F1F8F5E-53F2-5B0C-9D0A-0B1DE15C7C3A",\#
            "registeredAt":5,"token":"a"}]
            """#
        for version in 1...2 {
            #expect(try Push.decode(wireBody: Self.body(list, version: version)).targets.map(\.token.secret) == ["a"])
            #expect(try Push.decode(wireBody: Self.body(Self.table(), version: version)).targets.count == 2)
        }
        for version in [-1, 0, 3] {
            #expect(throws: WireError.self) { try Push.decode(wireBody: Self.body(Self.table(), version: version)) }
        }
    }

    @Test func `a table without targets is valid`() throws {
        let body = Self.body(Self.table(["devices": "[]", "tokens": "[]"]))
        #expect(try Push.decode(wireBody: body).targets.isEmpty)
    }
}
