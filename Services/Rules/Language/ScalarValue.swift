import PushProtocol
import Yams

/// Converts YAML scalars to JSON, by the core schema of YAML 1.2 reduced to JSON types.
///
/// `yes`, `no`, `on`, `off`, dates, times and quoted values are texts.
enum ScalarValue {
    static func json(_ scalar: Node.Scalar) -> JSONValue {
        guard scalar.style == .plain, scalar.tag.rawValue != Tag.Name.str.rawValue else {
            return .string(scalar.string)
        }
        switch scalar.string {
        case "", "~", "null": return .null
        case "true": return .bool(true)
        case "false": return .bool(false)
        default:
            if let integer = integer(scalar.string) { return .int(integer) }
            if let number = decimal(scalar.string) { return .double(number) }
            return .string(scalar.string)
        }
    }

    private static func integer(_ text: String) -> Int64? {
        text.utf8.allSatisfy { isDigit($0) || $0 == UInt8(ascii: "-") } ? Int64(text) : nil
    }

    private static func decimal(_ text: String) -> Double? {
        guard let first = text.utf8.first, isDigit(first) || first == UInt8(ascii: "-"),
            text.utf8.allSatisfy({ isDigit($0) || "-+.eE".utf8.contains($0) })
        else { return nil }
        return Double(text).flatMap { $0.isFinite ? $0 : nil }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

extension Node {
    /// Whether the node is an unquoted `{{variable}}`, which YAML reads as a mapping with a mapping as its key.
    var isBareTemplate: Bool {
        guard case .mapping(let mapping) = self, case .mapping = mapping.first?.key else { return false }
        return true
    }

    /// The name of the type in errors: “expected …, not …”.
    var kind: String {
        switch self {
        case .scalar(let scalar): ScalarValue.json(scalar).kind
        case .mapping: "keys with values"
        case .sequence: "a list"
        case .alias: "an alias"
        }
    }
}

extension JSONValue {
    var kind: String {
        switch self {
        case .null: "nothing"
        case .bool: "true or false"
        case .int, .double: "a number"
        case .string: "a text"
        case .array: "a list"
        case .object: "keys with values"
        }
    }
}
