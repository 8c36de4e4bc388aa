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

    /// For how long dead pushes wait for a person: as long as senders know which registrations were revoked. A push that
    /// is replayed later might reach the next owner of a phone.
    package static let deadPushesKept: Duration = StreamName.senderRevocations.memory

    /// About the dead letters of senders. Its priority is higher than that of ``deadLetters``, so that it applies in its
    /// place.
    package static let deadPushes = Policy(
        name: "dead-pushes", pattern: #"^(apns|fcm)-sender\.pushes\.(interactive|bulk)\.[a-z0-9-]+\.dead$"#,
        priority: 2, definition: ["message-ttl": .number(deadPushesKept.wholeMilliseconds)])

    /// For how long the dead letters of `queue` wait for a person.
    package static func deadLettersKept(in queue: WorkQueue) -> Duration {
        switch queue {
        case .senderPushes: deadPushesKept
        case .rulesEvents, .rulesAppEvents, .rulesOutcomes, .rulesErasures, .registryNotifications,
            .registryAppNotifications, .registryDevices, .registryAppDevices, .registryCampaigns, .feedbackOutcomes,
            .feedbackErasures:
            deadLettersKept
        }
    }

    /// All of them.
    package static let policies = [deadLetters, deadPushes]
}
