import Foundation
import PushProtocol

/// The attributes of a CloudEvent in binary mode: the headers `ce-…` (HTTP protocol binding 1.0.2, §3.1.3).
struct BinaryAttributes: Hashable, Sendable {
    static let headerPrefix = "ce-"

    /// By name, without the prefix.
    private(set) var values: [String: String] = [:]

    /// Reads the attributes among a request's headers. Header names are case-insensitive.
    init(_ headers: [(name: String, value: String)]) throws(EventRefusal) {
        for (name, value) in headers {
            let name = name.lowercased()
            guard name.hasPrefix(Self.headerPrefix) else { continue }
            let attribute = String(name.dropFirst(Self.headerPrefix.count))
            guard Self.isName(attribute) else {
                throw .invalid("a header ce-… has an invalid name: attribute names consist of a–z and 0–9")
            }
            guard attribute != "data", attribute != "datacontenttype" else {
                throw .invalid("the header ce-\(attribute) is not allowed; the body is the data")
            }
            guard values[attribute] == nil else { throw .invalid("the header ce-\(attribute) is repeated") }
            values[attribute] = try Self.decoded(value, of: attribute)
        }
    }

    private static func isName(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }

    /// Removes the quotes of a quoted string, then decodes percent sequences (§3.1.3.2).
    private static func decoded(_ value: String, of attribute: String) throws(EventRefusal) -> String {
        var text = value
        if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
            text = ""
            var isEscaped = false
            for character in value.dropFirst().dropLast() {
                if character == "\\", !isEscaped {
                    isEscaped = true
                } else {
                    text.append(character)
                    isEscaped = false
                }
            }
        }
        guard let decoded = text.removingPercentEncoding else {
            throw .invalid("the header ce-\(attribute) is not valid percent-encoded UTF-8")
        }
        return decoded
    }

    /// Returns the structured event with these attributes and a body that is one JSON value; an empty body means no
    /// data.
    func structuredBody(with data: [UInt8]) throws(EventRefusal) -> [UInt8] {
        var members = values.mapValues(JSONValue.string)
        guard !data.isEmpty else { return try Self.encode(members) }
        members["datacontenttype"] = "application/json"
        // `data` is valid JSON: it is copied as it came, because a rewritten number may change its form.
        var body = try Self.encode(members)
        body.removeLast()
        body += Array(#","data":"#.utf8)
        body += data
        body.append(UInt8(ascii: "}"))
        return body
    }

    private static func encode(_ members: [String: JSONValue]) throws(EventRefusal) -> [UInt8] {
        do {
            return try WireCoding.encode(JSONValue.object(members))
        } catch {
            throw EventRefusal(error)
        }
    }
}
