import Logging
import PushProtocol
import Testing

@testable import ServiceKit

@Suite struct LogLineTests {
    private func line(_ message: String, _ metadata: Logger.Metadata = [:], dropped: Int = 0) -> LogLine {
        LogLine(
            time: "2026-01-01T00:00:00.000Z", level: .info, label: "rules", message: message,
            identity: [("service", "rules"), ("instance", "one")], metadata: metadata, dropped: dropped)
    }

    private func json(_ line: LogLine) throws -> JSONValue {
        let bytes = line.bytes(.json)
        #expect(bytes.last == 0x0a)
        #expect(bytes.count { $0 == 0x0a } == 1)
        return try WireCoding.decode(JSONValue.self, from: bytes)
    }

    @Test func `a JSON line contains identity, message and metadata as members`() throws {
        let value = try json(
            line("Hello", ["app": "portal", "list": ["a", "b"], "map": ["x": "y", "z": ["w": "v"]]]))
        #expect(
            value == [
                "time": "2026-01-01T00:00:00.000Z", "level": "info", "message": "Hello", "logger": "rules",
                "service": "rules", "instance": "one", "app": "portal", "list": ["a", "b"],
                "map": ["x": "y", "z": ["w": "v"]],
            ])
    }

    @Test func `any character survives JSON`() throws {
        let text = "quote \" backslash \\ newline \n return \r tab \t bell \u{7} delete \u{7f} ü 日本 🐙 \u{0}"
        let value = try json(line(text, ["key with \" quote": "\(text)"]))
        #expect(value["message"]?.string == text)
        #expect(value["key with \" quote"]?.string == text)
    }

    @Test func `metadata cannot replace a reserved member of the line`() throws {
        let value = try json(line("Hello", ["level": "forged", "service": "forged"]))
        #expect(value["level"] == "info")
        #expect(value["service"] == "rules")
        #expect(value["meta.level"] == "forged")
    }

    @Test func `no text can forge a second line`() {
        let text = String(
            decoding: line("a\nb", ["user": "x\n2026 ERROR forged", "n": "1"]).bytes(.text), as: UTF8.self)
        #expect(text == "2026-01-01T00:00:00.000Z INFO     rules: a\\nb n=1 user=\"x\\n2026 ERROR forged\"\n")
    }

    @Test(arguments: [LogLine.Format.json, .text])
    func `a line is never longer than PIPE_BUF`(format: LogLine.Format) throws {
        let long = String(repeating: "日本\"", count: 5000)
        let many = Dictionary(uniqueKeysWithValues: (0..<200).map { ("k\($0)", Logger.MetadataValue.string(long)) })
        for metadata in [["one": .string(long)], many] {
            let bytes = line(long, metadata).bytes(format)
            #expect(bytes.count <= LogLine.limit)
            #expect(bytes.last == 0x0a)
        }
        #expect(try json(line(long, many))["truncated"] == 1)
    }

    @Test func `a line contains the number of lines dropped before it`() throws {
        #expect(try json(line("Hello", dropped: 7))["dropped"] == 7)
    }
}
