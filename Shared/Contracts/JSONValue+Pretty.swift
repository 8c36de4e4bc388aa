package import PushProtocol

extension JSONValue {
    /// Indented JSON with a final newline. Equal values give equal texts.
    ///
    /// Members that introduce a document or a schema come first; others follow in alphabetical order.
    package var pretty: String {
        var text = ""
        write(to: &text, indentation: "")
        return text + "\n"
    }

    private static let first = [
        "asyncapi", "info", "servers", "$schema", "$id", "$ref", "specversion", "id", "source", "name", "title",
        "summary", "description", "type", "const", "enum",
        "required", "properties",
    ]
    /// A list or object of at most this many bytes stays on its line.
    private static let shortLine = 80

    private func write(to text: inout String, indentation: String) {
        let compact = compact
        let inner = indentation + "  "
        switch self {
        case .array(let elements) where compact.utf8.count > Self.shortLine:
            text += "["
            for (index, element) in elements.enumerated() {
                text += (index == 0 ? "\n" : ",\n") + inner
                element.write(to: &text, indentation: inner)
            }
            text += "\n\(indentation)]"
        case .object(let members) where compact.utf8.count > Self.shortLine:
            text += "{"
            for (index, name) in Self.ordered(members).enumerated() {
                text += (index == 0 ? "\n" : ",\n") + inner + JSONValue.string(name).compact + ": "
                (members[name] ?? .null).write(to: &text, indentation: inner)
            }
            text += "\n\(indentation)}"
        default: text += compact
        }
    }

    /// The value on one line, with a blank after each colon and comma.
    private var compact: String {
        switch self {
        case .array(let elements): "[\(elements.map(\.compact).joined(separator: ", "))]"
        case .object(let members):
            "{"
                + Self.ordered(members).map { "\(JSONValue.string($0).compact): \((members[$0] ?? .null).compact)" }
                .joined(separator: ", ") + "}"
        case .null, .bool, .int, .double, .string:
            (try? WireCoding.text(self)) ?? "null"
        }
    }

    private static func ordered(_ members: [String: JSONValue]) -> [String] {
        members.keys.sorted { a, b in
            let (left, right) = (first.firstIndex(of: a) ?? first.count, first.firstIndex(of: b) ?? first.count)
            return left == right ? a < b : left < right
        }
    }
}
