import ArgumentParser
import Foundation
import Primitives
import PushProtocol

/// `--json`, for commands that print a result.
struct OutputOption: ParsableArguments {
    @Flag(help: "Print one JSON document instead of text.") var json = false

    /// Prints a result as JSON or as text.
    func write(_ document: @autoclosure () -> JSONValue, text: @autoclosure () -> [String]) throws {
        if json { return try Self.write(document()) }
        for line in text() { print(line) }
    }

    /// Prints a JSON document on one line, at once.
    static func write(_ document: JSONValue) throws {
        try write(text: try WireCoding.text(document) + "\n")
    }

    /// Writes a text to standard output, at once.
    static func write(text: String) throws { try FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) }

    /// Writes a remark to standard error, so that the output stays the result.
    static func remark(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}

/// The terminal of standard output.
enum Terminal {
    /// Whether to print colours: on a terminal, unless `NO_COLOR` is set (no-color.org).
    static var isColored: Bool {
        hasColors(isTerminal: isTerminal, environment: ProcessInfo.processInfo.environment)
    }

    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    static func hasColors(isTerminal: Bool, environment: [String: String]) -> Bool {
        isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
}

extension TextTable {
    /// The lines for standard output, or `none` without a row.
    func lines(orNone none: String) -> [String] { isEmpty ? [none] : lines(isColored: Terminal.isColored) }
}

extension JSONValue {
    /// An RFC 3339 time with milliseconds, or `null`.
    static func time(_ date: Date?) -> JSONValue { .optional(date.map(RFC3339.string(from:))) }

    /// A lower-case UUID, or `null`.
    static func id(_ id: UUID?) -> JSONValue { .optional(id?.uuidString.lowercased()) }

    static func number(_ number: some BinaryInteger) -> JSONValue { .int(Int64(number)) }

    static func number(_ number: Int?) -> JSONValue { number.map { .int(Int64($0)) } ?? .null }

    static func strings(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
}
