import PushProtocol
import PushSending

/// What a member of FCM's schema may hold.
indirect enum FCMShape: Sendable {
    case string, bool
    /// A 32-bit integer, as a number or in a string: protobuf's JSON form takes both.
    case integer
    case number
    /// Decimal seconds and `s`, such as `1.5s`.
    case duration
    /// An RFC 3339 time.
    case timestamp
    /// One of these names; `ignoringCase` where FCM documents lower case too.
    case choice(Set<String>, ignoringCase: Bool = false)
    /// An object whose values are strings, and whose keys are the app's own.
    case stringMap
    /// An object that FCM hands on as it is.
    case verbatim
    case list(FCMShape)
    case object(FCMObject)
}

/// An object of FCM's schema: its members by the names of the reference.
struct FCMObject: Sendable {
    private let shapes: [String: FCMShape]
    /// Both spellings of every member, by the one in the reference.
    private let spellings: [String: String]

    /// `members` in snake_case; lowerCamelCase is read as well.
    init(_ members: [String: FCMShape]) {
        shapes = members
        spellings = Dictionary(members.keys.flatMap { [($0, $0), (Self.camelCase($0), $0)] }) { first, _ in first }
    }

    private static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        return words[0] + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    /// Checks `value` and returns it with every member under its snake_case name, so that it can be laid over another.
    ///
    /// A `null` stays: it takes away what it is laid over.
    func read(_ value: JSONValue, at path: String) throws(LocalRejection) -> JSONValue {
        guard case .object(let members) = value else { throw .init(fcm: "not-an-object", at: path) }
        var read: [String: JSONValue] = [:]
        for (spelling, value) in members {
            guard let name = spellings[spelling], let shape = shapes[name] else {
                throw .init(fcm: "unknown-member", at: Self.path(path, ProviderWord.printable(spelling)))
            }
            let memberPath = Self.path(path, name)
            guard read[name] == nil else { throw .init(fcm: "member-spelled-twice", at: memberPath) }
            read[name] = value == .null ? value : try shape.read(value, at: memberPath)
        }
        return .object(read)
    }

    /// Without the members that are `null`, which is how protobuf's JSON form says "not set". What is inside verbatim
    /// objects is not ours to judge.
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

extension FCMShape {
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

    /// What is wrong with a value that is checked as a whole.
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
    /// Where in `message` something is not as FCM's schema has it. The path holds names of the schema; of the app's own
    /// words it holds at most the name of a member that FCM does not know.
    init(fcm problem: String, at path: String) { self.init("fcm-\(problem):\(path.isEmpty ? "message" : path)") }
}
