/// The reasons for which a body cannot be decoded. All are permanent: the stage dead-letters the message at once.
package enum WireError: Error, Equatable, Sendable {
    case tooLarge(bytes: Int, limit: Int)
    case notUTF8(offset: Int)
    case tooDeep(limit: Int)
    case notJSON(String)
    /// A member is missing. `path` is dotted.
    case missing(path: String)
    /// A member's value cannot be accepted. `problem` does not quote the value.
    case invalid(path: String, problem: String)
    case unencodable(String)
    /// The body does not match its routing key. The text quotes neither.
    case misrouted(String)

    /// A stable code for headers and metrics.
    package var code: String {
        switch self {
        case .tooLarge: "too-large"
        case .notUTF8: "not-utf8"
        case .tooDeep: "too-deep"
        case .notJSON: "not-json"
        case .missing: "missing-field"
        case .invalid: "invalid-field"
        case .unencodable: "unencodable"
        case .misrouted: "wrong-routing-key"
        }
    }
}

extension WireError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tooLarge(let bytes, let limit): "the body has \(bytes) bytes; at most \(limit) are accepted"
        case .notUTF8(let offset): "the body is not UTF-8: bad byte at offset \(offset)"
        case .tooDeep(let limit): "the body nests deeper than \(limit) levels"
        case .notJSON(let problem): "the body is not JSON: \(problem)"
        case .missing(let path): "\(path) is missing"
        case .invalid(let path, let problem): "\(path) is invalid: \(problem)"
        case .unencodable(let problem): "the message cannot be encoded: \(problem)"
        case .misrouted(let problem): "the routing key \(problem)"
        }
    }
}

extension WireError {
    /// Converts Foundation's error to a path and a reason.
    init(_ error: DecodingError) {
        func path(_ keys: [any CodingKey]) -> String {
            keys.isEmpty
                ? "the body" : keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, let context): self = .missing(path: path(context.codingPath + [key]))
        case .valueNotFound(_, let context): self = .missing(path: path(context.codingPath))
        case .typeMismatch(let type, let context):
            self = .invalid(path: path(context.codingPath), problem: "expected \(WireError.jsonName(of: type))")
        case .dataCorrupted(let context):
            self =
                context.codingPath.isEmpty
                ? .notJSON(context.debugDescription)
                : .invalid(path: path(context.codingPath), problem: context.debugDescription)
        @unknown default: self = .notJSON("\(error)")
        }
    }

    private static func jsonName(of type: Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is any BinaryInteger.Type: "an integer"
        case is any BinaryFloatingPoint.Type: "a number"
        case is [Any].Type: "an array"
        default: "an object"
        }
    }
}
