import PushProtocol

/// A script as it is posted to the control port: outcomes, and whom they are for.
struct OutcomeScript: Sendable {
    let party: Party
    let scope: OutcomeBook.Scope
    let outcome: ScriptedOutcome

    /// Reads one outcome or a list of them; `problem` says which and what is wrong.
    static func read(_ value: JSONValue) throws(ControlProblem) -> [OutcomeScript] {
        guard case .array(let elements) = value else { return [try OutcomeReader(value, at: "").script()] }
        var scripts: [OutcomeScript] = []
        for (index, element) in elements.enumerated() {
            scripts.append(try OutcomeReader(element, at: "[\(index)].").script())
        }
        return scripts
    }
}

/// What is wrong with a request to the control port, for the person who made it.
struct ControlProblem: Error, Hashable, Sendable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Reads the members of one posted object by kind, and refuses what it does not know.
struct MemberReader {
    private let members: [String: JSONValue]
    private let path: String

    init(_ value: JSONValue, at path: String, known: Set<String>) throws(ControlProblem) {
        guard let members = value.object else {
            throw ControlProblem("\(path.isEmpty ? "the body" : String(path.dropLast())) is not an object")
        }
        self.members = members
        self.path = path
        if let unknown = members.keys.sorted().first(where: { !known.contains($0) }) {
            throw ControlProblem("\(path)\(unknown) is unknown; known are \(known.sorted().joined(separator: ", "))")
        }
    }

    func has(_ name: String) -> Bool { members[name] != nil }
    func raw(_ name: String) -> JSONValue? { members[name] }

    func problem(_ name: String, _ problem: String) -> ControlProblem { ControlProblem("\(path)\(name) \(problem)") }

    func text(_ name: String) throws(ControlProblem) -> String? {
        guard let value = members[name] else { return nil }
        guard let text = value.string else { throw problem(name, "is not a string") }
        return text
    }

    func integer(_ name: String, in range: ClosedRange<Int64>) throws(ControlProblem) -> Int? {
        guard let value = members[name] else { return nil }
        guard let integer = value.int, range.contains(integer) else {
            throw problem(name, "is not a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(integer)
    }

    func flag(_ name: String) throws(ControlProblem) -> Bool {
        guard let value = members[name] else { return false }
        guard let flag = value.bool else { throw problem(name, "is not true or false") }
        return flag
    }

    func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, of type: Choice.Type
    ) throws(ControlProblem) -> Choice? where Choice.RawValue == String {
        guard let text = try text(name) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw problem(name, "is none of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return choice
    }
}
