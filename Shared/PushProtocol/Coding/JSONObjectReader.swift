/// Reads the members of one JSON object in a request body.
package struct JSONObjectReader {
    private let members: [String: JSONValue]
    private let prefix: String

    /// - Parameter known: the accepted names; `nil` accepts any.
    package init(_ value: JSONValue, at path: String, prefix: String, known: [String]?) throws(WireError) {
        guard let members = value.object else { throw .invalid(path: path, problem: "expected an object") }
        if let known, members.keys.contains(where: { !known.contains($0) }) {
            // The error does not quote the unknown name: it may be a misplaced token.
            throw .invalid(path: path, problem: "has an unknown member; known are \(known.joined(separator: ", "))")
        }
        self.members = members
        self.prefix = prefix
    }

    /// The member's value; `nil` where it is absent or `null`.
    package subscript(name: String) -> JSONValue? { members[name].flatMap { $0 == .null ? Optional.none : $0 } }

    /// The dotted path of a member, for errors.
    package func path(_ name: String) -> String { prefix + name }

    package func required(_ name: String) throws(WireError) -> JSONValue {
        guard let value = members[name], value != .null else { throw .missing(path: prefix + name) }
        return value
    }

    package func text(_ name: String) throws(WireError) -> String {
        guard let text = try required(name).string else {
            throw .invalid(path: prefix + name, problem: "expected a string")
        }
        return text
    }

    /// Reads a member with `parse`. Returns `nil` where it is absent or `null`.
    ///
    /// - Parameter problem: the error where `parse` returns `nil`.
    package func optional<Value>(
        _ name: String, _ problem: @autoclosure () -> String, _ parse: (JSONValue) -> Value?
    ) throws(WireError) -> Value? {
        guard let value = self[name] else { return nil }
        guard let parsed = parse(value) else { throw .invalid(path: path(name), problem: problem()) }
        return parsed
    }

    /// Reads a Boolean. Returns `nil` where it is absent or `null`.
    package func flag(_ name: String) throws(WireError) -> Bool? {
        try optional(name, "expected true or false", \.bool)
    }

    /// Reads free text without control characters. Returns `nil` where it is absent or `null`.
    ///
    /// - Parameter limit: in Unicode scalars, as JSON Schema counts them.
    package func freeText(_ name: String, _ limit: Int) throws(WireError) -> String? {
        try optional(name, "expected 1–\(limit) characters without controls") { value in
            value.string.flatMap { $0.isFreeText(upTo: limit) ? $0 : nil }
        }
    }

    /// Reads visible ASCII of at most `limit` bytes. Returns `nil` where it is absent or `null`.
    package func visibleASCII(_ name: String, _ limit: Int) throws(WireError) -> String? {
        try optional(name, "expected 1–\(limit) visible ASCII characters") { value in
            value.string.flatMap { (1...limit).contains($0.utf8.count) && $0.isVisibleASCII ? $0 : nil }
        }
    }
}
