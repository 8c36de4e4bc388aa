import PushProtocol

/// An invalid request to the control port, described for its author.
struct ControlRequestError: Error, Hashable, Sendable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Reads typed members of a posted object. Rejects unknown members.
struct MemberReader {
    private let members: [String: JSONValue]
    private let path: String

    /// In milliseconds: an hour.
    static let delays: ClosedRange<Int64> = 0...3_600_000

    init(_ value: JSONValue, at path: String, known: Set<String>) throws(ControlRequestError) {
        guard let members = value.object else {
            throw ControlRequestError("\(path.isEmpty ? "the body" : String(path.dropLast())) is not an object")
        }
        self.members = members
        self.path = path
        if let unknown = members.keys.sorted().first(where: { !known.contains($0) }) {
            throw ControlRequestError(
                "\(path)\(unknown) is unknown; known are \(known.sorted().joined(separator: ", "))")
        }
    }

    /// Reads the elements of a list, or a single value, each with the path of its members.
    static func elements<Element>(
        of value: JSONValue, _ read: (_ path: String, JSONValue) throws(ControlRequestError) -> Element
    ) throws(ControlRequestError) -> [Element] {
        guard let elements = value.array else { return [try read("", value)] }
        return try elements.enumerated().map { (index, element) throws(ControlRequestError) in
            try read("[\(index)].", element)
        }
    }

    func has(_ name: String) -> Bool { members[name] != nil }
    func raw(_ name: String) -> JSONValue? { members[name] }

    func problem(_ name: String, _ problem: String) -> ControlRequestError {
        ControlRequestError("\(path)\(name) \(problem)")
    }

    func text(_ name: String) throws(ControlRequestError) -> String? {
        guard let value = members[name] else { return nil }
        guard let text = value.string else { throw problem(name, "is not a string") }
        return text
    }

    func integer(_ name: String, in range: ClosedRange<Int64>) throws(ControlRequestError) -> Int? {
        guard let value = members[name] else { return nil }
        guard let integer = value.int, range.contains(integer) else {
            throw problem(name, "is not a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(integer)
    }

    func number(_ name: String, in range: ClosedRange<Double>) throws(ControlRequestError) -> Double? {
        guard let value = members[name] else { return nil }
        guard let number = value.number, range.contains(number) else {
            throw problem(name, "is not a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func flag(_ name: String) throws(ControlRequestError) -> Bool {
        guard let value = members[name] else { return false }
        guard let flag = value.bool else { throw problem(name, "is not true or false") }
        return flag
    }

    func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, of type: Choice.Type
    ) throws(ControlRequestError) -> Choice? where Choice.RawValue == String {
        guard let text = try text(name) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw problem(name, "is none of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return choice
    }

    /// A reader of a nested object; `nil` when it is absent.
    func inner(_ name: String, known: Set<String>) throws(ControlRequestError) -> MemberReader? {
        guard let value = members[name] else { return nil }
        return try MemberReader(value, at: "\(path)\(name).", known: known)
    }
}

extension MemberReader {
    /// A delay in milliseconds, or a distribution: `{"uniform": [a, b]}`, `{"exponential": mean}`, `{"p50": a, "p99":
    /// b}`. Absent means none.
    func latency(_ name: String) throws(ControlRequestError) -> Latency {
        guard let value = raw(name) else { return .none }
        if value.object == nil {
            return .fixed(.milliseconds(try integer(name, in: Self.delays) ?? 0))
        }
        guard let reader = try inner(name, known: ["uniform", "exponential", "p50", "p99"]) else { return .none }
        let range = 0...Latency.maximum
        switch (
            reader.raw("uniform")?.array, try reader.number("exponential", in: range),
            try reader.number("p50", in: range), try reader.number("p99", in: range)
        )
        {
        case (let bounds?, nil, nil, nil):
            guard bounds.count == 2, let least = bounds[0].number, let most = bounds[1].number, least <= most,
                range.contains(least), range.contains(most)
            else { throw reader.problem("uniform", "is not [least, most] in milliseconds") }
            return .uniform(least...most)
        case (nil, let mean?, nil, nil): return .exponential(mean: mean)
        case (nil, nil, let median?, let tail?) where median > 0 && tail >= median:
            return .quantiles(p50: median, p99: tail)
        default:
            throw problem(
                name, "is not milliseconds, {\"uniform\": [least, most]}, {\"exponential\": mean} or {\"p50\", \"p99\"}"
            )
        }
    }

    func goAway() throws(ControlRequestError) -> GoAway? {
        guard let reader = try inner("goaway", known: ["last_stream", "code", "reason", "text", "pause_ms"]) else {
            return nil
        }
        var goAway = GoAway(lastStream: try reader.lastStream())
        goAway.code = UInt32(try reader.integer("code", in: 0...0xffff_ffff) ?? 0)
        if let reason = try reader.text("reason") {
            goAway.debugData = JSONWriter.object { $0.member("reason", reason) }
        }
        if let text = try reader.text("text") { goAway.debugData = Array(text.utf8) }
        if let pause = try reader.integer("pause_ms", in: Self.delays) { goAway.pause = .milliseconds(pause) }
        return goAway
    }

    private func lastStream() throws(ControlRequestError) -> GoAway.LastStream {
        let words = "before, included, graceful or a stream's number"
        switch raw("last_stream") {
        case nil: throw problem("last_stream", "is missing; it is \(words)")
        case .string("before"): return .before
        case .string("included"): return .included
        case .string("graceful"): return .graceful
        case .int(let stream) where (0...Int64(Int32.max)).contains(stream): return .exactly(Int32(stream))
        default: throw problem("last_stream", "is none of \(words)")
        }
    }
}
