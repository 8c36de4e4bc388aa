extension Topology {
    /// A RabbitMQ policy. It also applies to existing queues, whose arguments cannot be changed. Operators set
    /// policies (`rabbitmqctl`, definitions), not AMQP clients. The matching policy of the highest priority applies.
    package struct Policy: Hashable, Sendable {
        package var name: String
        /// A regular expression for queue names.
        package var pattern: String
        package var priority: Int64
        package var definition: [String: Argument]
    }

    /// How long dead letters are kept. Half as long as the registry keeps tombstones, so a replayed message is always
    /// checked against them.
    package static let deadLetterRetention: Duration = .seconds(14 * 86_400)

    /// Matches dead-letter queues only. An app may be called `dead`, so matching the suffix would include its work
    /// queues.
    package static let deadLetters = Policy(
        name: "dead-letters",
        pattern: #"^(rules\.([a-z]+|events\.app\.[a-z0-9-]+)|feedback\.[a-z]+"#
            + #"|token-registry\.(campaigns|(devices|notifications\.(interactive|bulk))(\.app\.[a-z0-9-]+)?)"#
            + #"|apns-sender\.channels|(apns|fcm|webpush)-sender\.pushes\.(interactive|bulk)\.[a-z0-9-]+"#
            + #"|webhook-sender\.reports\.[a-z0-9-]+\.[a-z0-9-]+)\.dead$"#,
        priority: 1, definition: ["message-ttl": .number(deadLetterRetention.wholeMilliseconds)])

    /// How long dead pushes are kept: as long as senders know revocations. A push replayed later could reach a
    /// device's next user.
    package static let deadPushRetention: Duration = StreamName.senderRevocations.retention

    /// Matches the dead-letter queues of senders. Its higher priority replaces ``deadLetters``.
    package static let deadPushes = Policy(
        name: "dead-pushes", pattern: #"^(apns|fcm|webpush)-sender\.pushes\.(interactive|bulk)\.[a-z0-9-]+\.dead$"#,
        priority: 2, definition: ["message-ttl": .number(deadPushRetention.wholeMilliseconds)])

    /// How long the dead letters of `queue` are kept.
    package static func deadLetterRetention(in queue: WorkQueue) -> Duration {
        switch queue {
        case .senderPushes: deadPushRetention
        case .rulesEvents, .rulesAppEvents, .rulesOutcomes, .rulesErasures, .rulesCensus, .rulesChannels,
            .registryNotifications, .registryAppNotifications, .registryDevices, .registryAppDevices,
            .registryCampaigns, .apnsSenderChannels, .feedbackOutcomes,
            .feedbackErasures, .webhookReports:
            deadLetterRetention
        }
    }

    package static let policies = [deadLetters, deadPushes]
}
