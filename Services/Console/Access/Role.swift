/// The rights of a person in the console. Each role has those of the roles before it.
enum Role: String, CaseIterable, Comparable, Sendable {
    /// Reads counts and the state of services; nothing about a person.
    case look
    /// Reads events and people, and makes support links.
    case support
    /// Acts: revokes notifications, deactivates devices. Reads the audit log.
    case operate

    static func < (a: Role, b: Role) -> Bool { a.rank < b.rank }

    private var rank: Int {
        switch self {
        case .look: 0
        case .support: 1
        case .operate: 2
        }
    }

    /// The highest role among the names of a claim: `heliograph-look`, `heliograph-support`, `heliograph-operate`.
    static func highest(in names: [String]) -> Role? {
        allCases.filter { names.contains("heliograph-\($0.rawValue)") }.max()
    }
}
