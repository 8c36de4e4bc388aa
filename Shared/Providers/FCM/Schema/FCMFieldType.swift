import PushProtocol

/// The type of a field in FCM's schema.
indirect enum FCMFieldType: Sendable {
    case string, bool
    /// A 32-bit integer, as a number or a string. The JSON form of protobuf accepts both.
    case integer
    case number
    /// Decimal seconds and `s`, such as `1.5s`.
    case duration
    /// An RFC 3339 time.
    case timestamp
    /// An enum name. `ignoringCase` where FCM documents lower case too.
    case choice(Set<String>, ignoringCase: Bool = false)
    /// An object with string values and arbitrary keys.
    case stringMap
    /// An object that FCM forwards unchanged.
    case verbatim
    case list(FCMFieldType)
    case object(FCMObjectSchema)
}

/// An object type of FCM's schema.
struct FCMObjectSchema: Sendable {
    private let shapes: [String: FCMFieldType]
    /// Both spellings of each member, mapped to the one in the reference.
    private let spellings: [String: String]

    /// Takes members in snake_case. Also accepts lowerCamelCase when reading.
    init(_ members: [String: FCMFieldType]) {
        shapes = members
        spellings = Dictionary(members.keys.flatMap { [($0, $0), (Self.camelCase($0), $0)] }) { first, _ in first }
    }

    private static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        return words[0] + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    /// Validates `value` and returns it with snake_case names, ready for merging.
    ///
    /// Keeps `null`, which removes a member in the merge.
    func read(_ value: JSONValue, at path: String) throws(LocalRejection) -> JSONValue {
        guard case .object(let members) = value else { throw .init(fcm: "not-an-object", at: path) }
        var read: [String: JSONValue] = [:]
        for (spelling, value) in members {
            guard let name = spellings[spelling], let shape = shapes[name] else {
                throw .init(fcm: "unknown-member", at: Self.path(path, SanitizedReason.printable(spelling)))
            }
            let memberPath = Self.path(path, name)
            guard read[name] == nil else { throw .init(fcm: "member-spelled-twice", at: memberPath) }
            read[name] = value == .null ? value : try shape.read(value, at: memberPath)
        }
        return .object(read)
    }

    /// Removes `null` members, which mean "not set" in the JSON form of protobuf. Leaves verbatim objects unchanged.
    func dropNulls(of value: JSONValue) -> JSONValue {
        guard case .object(let members) = value else { return value }
        return .object(
            members.filter { $0.value != .null }
                .reduce(into: [:]) { kept, member in
                    guard case .object(let inner) = shapes[member.key] else {
                        kept[member.key] = member.value
                        return
                    }
                    kept[member.key] = inner.dropNulls(of: member.value)
                })
    }

    private static func path(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}

extension FCMFieldType {
    fileprivate func read(_ value: JSONValue, at path: String) throws(LocalRejection) -> JSONValue {
        switch self {
        case .object(let object): return try object.read(value, at: path)
        case .list(let element):
            guard case .array(let values) = value else { throw .init(fcm: "not-a-list", at: path) }
            var read: [JSONValue] = []
            for value in values { read.append(try element.read(value, at: path)) }
            return .array(read)
        case .string, .bool, .integer, .number, .duration, .timestamp, .choice, .stringMap, .verbatim:
            if let problem = problem(with: value) { throw .init(fcm: problem, at: path) }
            return value
        }
    }

    /// The problem with a value other than an object or list.
    private func problem(with value: JSONValue) -> String? {
        switch self {
        case .string: value.string == nil ? "not-a-string" : nil
        case .bool: value.bool == nil ? "not-a-bool" : nil
        case .integer:
            (value.int ?? value.string.flatMap { Int64($0) }).flatMap { Int32(exactly: $0) } == nil
                ? "not-an-integer" : nil
        case .number: value.number == nil ? "not-a-number" : nil
        case .duration: value.string.flatMap(FCMDuration.init) == nil ? "not-a-duration" : nil
        case .timestamp: value.string.flatMap(RFC3339.date(from:)) == nil ? "not-a-time" : nil
        case .choice(let names, let ignoresCase):
            value.string.map { names.contains(ignoresCase ? $0.uppercased() : $0) } == true
                ? nil : "not-one-of-its-words"
        case .stringMap: Self.isStringMap(value) ? nil : "not-a-map-of-strings"
        case .verbatim: value.object == nil ? "not-an-object" : nil
        case .list, .object: nil
        }
    }

    private static func isStringMap(_ value: JSONValue) -> Bool {
        value.object.map { $0.values.allSatisfy { $0.string != nil } } ?? false
    }
}

extension LocalRejection {
    /// A field that does not match FCM's schema. The path has names of the schema only, except for the name of an
    /// unknown member.
    init(fcm problem: String, at path: String) { self.init("fcm-\(problem):\(path.isEmpty ? "message" : path)") }
}
