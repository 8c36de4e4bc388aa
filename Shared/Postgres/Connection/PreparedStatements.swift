/// The names under which one connection has prepared its statements.
///
/// A program's statements are few, since values are bound. Reaching the limit means that texts are made without end
/// (by `\(identifier:)`), so all are given up at once.
struct PreparedStatements {
    struct Key: Hashable {
        let text: String
        let types: [UInt32]
    }

    static let limit = 500

    private var names: [Key: String] = [:]
    private var made = 0

    var isFull: Bool { names.count >= Self.limit }

    func name(of key: Key) -> String? { names[key] }

    /// Never given out twice on one connection: a forgotten name may still be taken on the server.
    mutating func newName() -> String {
        made += 1
        return "s\(made)"
    }

    mutating func remember(_ key: Key, as name: String) { names[key] = name }

    mutating func forget(_ key: Key) { names[key] = nil }

    mutating func forgetAll() { names = [:] }
}
