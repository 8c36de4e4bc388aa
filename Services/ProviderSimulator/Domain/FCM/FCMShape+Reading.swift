import PushProtocol

extension FCMMessageShape {
    /// Returns the object with canonical field names and appends its violations. `null` counts as absent.
    func read(_ value: JSONValue, at path: String, _ violations: inout [FCMViolation]) -> [String: JSONValue] {
        guard let members = value.object else {
            violations.append(FCMViolation(field: path, description: Self.mismatch(path, "an object")))
            return [:]
        }
        var read: [String: JSONValue] = [:]
        for (key, value) in members.sorted(by: { $0.key < $1.key }) where value != .null {
            guard let field = fields[key] else {
                let place = path.isEmpty ? "the request" : "'\(path)'"
                violations.append(
                    FCMViolation(
                        field: path,
                        description:
                            "Invalid JSON payload received. Unknown name \"\(key)\" at \(place): Cannot find field."))
                continue
            }
            let fieldPath = path.isEmpty ? field.name : "\(path).\(field.name)"
            read[field.name] = field.shape.read(value, at: fieldPath, &violations)
        }
        return read
    }

    static func mismatch(_ path: String, _ expected: String) -> String {
        "Invalid value at '\(path)': expected \(expected)"
    }
}

extension FCMShape {
    /// Returns the value with canonical field names inside messages.
    fileprivate func read(_ value: JSONValue, at path: String, _ violations: inout [FCMViolation]) -> JSONValue {
        switch self {
        case .message(let shape): return .object(shape.read(value, at: path, &violations))
        case .list(let shape): return readList(of: shape, value, at: path, &violations)
        case .stringMap: readStringMap(value, at: path, &violations)
        case .string, .bool, .integer, .number, .duration, .timestamp, .enumeration, .anyObject:
            if !admits(value) {
                violations.append(FCMViolation(field: path, description: FCMMessageShape.mismatch(path, expectation)))
            }
        }
        return value
    }

    private func readList(
        of shape: FCMShape, _ value: JSONValue, at path: String, _ violations: inout [FCMViolation]
    ) -> JSONValue {
        guard let elements = value.array else {
            violations.append(FCMViolation(field: path, description: FCMMessageShape.mismatch(path, "a list")))
            return value
        }
        return .array(
            elements.enumerated().map { index, element in
                shape.read(element, at: "\(path)[\(index)]", &violations)
            })
    }

    /// Protobuf encodes a map as a repeated entry, so paths carry an index; here in the order of the keys.
    private func readStringMap(_ value: JSONValue, at path: String, _ violations: inout [FCMViolation]) {
        guard let members = value.object else {
            violations.append(FCMViolation(field: path, description: FCMMessageShape.mismatch(path, "an object")))
            return
        }
        for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() where member.value.string == nil {
            let place = "\(path)[\(index)].value"
            violations.append(FCMViolation(field: place, description: FCMMessageShape.mismatch(place, "a string")))
        }
    }

    private func admits(_ value: JSONValue) -> Bool {
        switch self {
        case .string: value.string != nil
        case .bool: value.bool != nil
        // Protobuf's JSON mapping accepts numbers as strings.
        case .integer: (value.int ?? value.string.flatMap { Int64($0) }).map { Int32(exactly: $0) != nil } ?? false
        case .number:
            switch value {
            case .int, .double: true
            case .string(let text): Double(text) != nil
            case .null, .bool, .array, .object: false
            }
        case .duration: value.string.flatMap(FCMDuration.init) != nil
        case .timestamp: value.string.flatMap(RFC3339.date(from:)) != nil
        case .enumeration(let names, let foldsCase):
            value.string.map { names.contains(foldsCase ? $0.uppercased() : $0) } ?? false
        case .anyObject: value.object != nil
        case .stringMap, .list, .message: false
        }
    }

    private var expectation: String {
        switch self {
        case .string: "a string"
        case .bool: "true or false"
        case .integer: "a 32-bit integer"
        case .number: "a number"
        case .duration: "a duration, seconds followed by 's'"
        case .timestamp: "an RFC 3339 time"
        case .enumeration(let names, _): "one of \(names.sorted().joined(separator: ", "))"
        case .anyObject, .stringMap, .message: "an object"
        case .list: "a list"
        }
    }
}

/// A protobuf Duration in JSON.
struct FCMDuration: Hashable, Sendable {
    /// Rounded down, as FCM does with `ttl`.
    let seconds: Int64
    let isNegative: Bool

    init?(_ text: String) {
        guard text.hasSuffix("s") else { return nil }
        isNegative = text.hasPrefix("-")
        let parts = text.dropLast().drop { $0 == "-" }.split(separator: ".", omittingEmptySubsequences: false)
        guard text.filter({ $0 == "-" }).count == (isNegative ? 1 : 0), (1...2).contains(parts.count),
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let seconds = Int64(parts[0]), seconds <= 315_576_000_000, parts.count == 1 || parts[1].utf8.count <= 9
        else { return nil }
        self.seconds = seconds
    }
}
