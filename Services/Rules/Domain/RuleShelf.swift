import Synchronization

/// The rules in force: one value that everything decides by, exchanged as a whole.
final class RuleShelf: Sendable {
    private let state: Mutex<RuleBook>

    init(_ book: RuleBook) { state = Mutex(book) }

    var book: RuleBook { state.withLock { $0 } }

    func put(_ book: RuleBook) { state.withLock { $0 = book } }
}
