import FoundationEssentials
import PushProtocol

/// Parsing and validation of single values.
package enum SettingValue {
    package static func boolean(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes", "1": true
        case "false", "no", "0": false
        default: nil
        }
    }

    package static func duration(_ text: String) -> Duration? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard digits.count <= 9, let count = Int64(digits) else { return nil }
        switch text.dropFirst(digits.count) {
        case "ms": return .milliseconds(count)
        case "s": return .seconds(count)
        case "m": return .seconds(count * 60)
        case "h": return .seconds(count * 3600)
        default: return nil
        }
    }

    /// Returns the problem with `text` as the value of `key`, or `nil` if it is valid. Does not quote a secret.
    package static func check(_ text: String, for key: ConfigurationKey) -> String? {
        isValid(text, key.kind) ? nil : problem(with: text, for: key)
    }

    static func problem(with text: String, for key: ConfigurationKey) -> String {
        "\(key.name): \(key.isSecret ? "its value" : "“\(text)”") is not \(key.kind.expectation)"
    }

    private static func isValid(_ text: String, _ kind: ConfigurationKey.Kind) -> Bool {
        switch kind {
        case .text: true
        case .longSecret(let bytes): text.utf8.count >= bytes
        case .boolean: boolean(text) != nil
        case .integer(let range): Int(text).map(range.contains) ?? false
        case .port: Int(text).map((0...65535).contains) ?? false
        case .duration(let range): duration(text).map(range.contains) ?? false
        case .url(let schemes): isURL(text, schemes)
        case .file: isReadable(text, directory: false)
        case .directory: isReadable(text, directory: true)
        case .choice(let words): words.contains(text)
        }
    }

    /// Checks only for a scheme, `://` and a host: URL parsers reject AMQP URLs with several hosts.
    private static func isURL(_ text: String, _ schemes: [String]) -> Bool {
        guard let scheme = schemes.first(where: { text.hasPrefix($0 + "://") }) else { return false }
        let authority = text.dropFirst(scheme.count + 3).prefix { $0 != "/" && $0 != "?" }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        return !host.isEmpty && text.allSatisfy { !$0.isWhitespace }
    }

    /// Returns the secret of a file without surrounding white space; `nil` if there is none.
    package static func secret(inFile path: String) -> String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8), !text.trimmed.isEmpty else { return nil }
        return text.trimmed
    }

    package static func isReadable(_ path: String, directory: Bool) -> Bool {
        var isDirectory = false
        let files = FileManager.default
        return files.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory == directory
            && files.isReadableFile(atPath: path)
    }
}

extension ConfigurationKey.Kind {
    /// A phrase that completes “is not …”.
    package var expectation: String {
        switch self {
        case .text: "text"
        case .longSecret(let bytes):
            "a secret of at least \(bytes) bytes (create one with `openssl rand -hex \(bytes)`)"
        case .boolean: "true or false"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .port: "a port (1–65535, or 0 for any free one)"
        case .duration(let range):
            "a duration from \(range.lowerBound.spelled) to \(range.upperBound.spelled), such as 250ms, 5s, 2m or 1h"
        case .url(let schemes): "a URL of the form \(schemes.map { "\($0)://host/…" }.joined(separator: " or "))"
        case .file: "a file that exists and can be read"
        case .directory: "a folder that exists and can be read"
        case .choice(let words): "one of \(words.joined(separator: ", "))"
        }
    }
}

extension Duration {
    /// The configuration syntax: `250ms`, `25s`, `10m`.
    package var spelled: String {
        let milliseconds = wholeMilliseconds
        guard milliseconds.isMultiple(of: 1000) else { return "\(milliseconds)ms" }
        let seconds = milliseconds / 1000
        if seconds != 0, seconds.isMultiple(of: 3600) { return "\(seconds / 3600)h" }
        if seconds != 0, seconds.isMultiple(of: 60) { return "\(seconds / 60)m" }
        return "\(seconds)s"
    }
}
