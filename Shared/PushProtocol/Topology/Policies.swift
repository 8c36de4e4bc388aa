extension Topology {
    /// A rule of the broker about queues, those that are there already too: their arguments nobody can change any more. The
    /// broker takes policies from its operator (`rabbitmqctl`, definitions) and not over AMQP, and applies one to a queue,
    /// that of the highest priority.
    package struct Policy: Hashable, Sendable {
        package var name: String
        /// A regular expression for the names of the queues that it is about.
        package var pattern: String
        package var priority: Int64
        package var definition: [String: Argument]
    }

    /// For how long dead letters wait for a person. Half as long as the registry remembers whom it has erased and what
    /// ended: whatever is replayed meets what it has to be held against, and nothing about anybody outlasts that memory.
    package static let deadLettersKept: Duration = .seconds(14 * 86_400)

    /// About dead letters, and nothing else: an app may be called `dead`, and its work queues end in that word.
    package static let deadLetters = Policy(
        name: "dead-letters",
        pattern: #"^(rules\.([a-z]+|events\.app\.[a-z0-9-]+)|feedback\.[a-z]+"#
            + #"|token-registry\.(campaigns|(devices|notifications\.(interactive|bulk))(\.app\.[a-z0-9-]+)?)"#
            + #"|(apns|fcm)-sender\.pushes\.(interactive|bulk)\.[a-z0-9-]+)\.dead$"#,
        priority: 1, definition: ["message-ttl": .number(deadLettersKept.wholeMilliseconds)])

    /// All of them.
    package static let policies = [deadLetters]
}
