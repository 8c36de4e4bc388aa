/// The prepared statements of one connection.
///
/// A program has few statement texts, since values are bound. At the limit, caused only by many `\(identifier:)` texts,
/// all statements are deallocated.
struct PreparedStatements {
    struct StatementKey: Hashable {
        let text: String
        let types: [UInt32]
    }

    static let limit = 500

    private var names: [StatementKey: String] = [:]
    private var made = 0

    var isFull: Bool { names.count >= Self.limit }

    func name(of key: StatementKey) -> String? { names[key] }

    /// Returns a name unused on this connection; a forgotten statement may still exist on the server.
    mutating func newName() -> String {
        made += 1
        return "s\(made)"
    }

    mutating func remember(_ key: StatementKey, as name: String) { names[key] = name }

    mutating func forget(_ key: StatementKey) { names[key] = nil }

    mutating func forgetAll() { names = [:] }
}
