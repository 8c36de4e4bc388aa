import FoundationEssentials
import PushProtocol

/// How many registrations there are, counted when somebody asks and kept for a while: counting reads the whole table.
actor RegistrationCounts {
    /// For how long figures are good.
    static let lifetime = Duration.seconds(600)

    /// What is counted apart.
    struct Group: Hashable, Sendable {
        var app: AppID
        var kind: RegistrationKind
        var environment: ProviderEnvironment
        var state: RegistrationState
    }

    struct Count: Hashable, Sendable {
        let group: Group
        let number: Int
    }

    struct Figures: Sendable {
        /// When the counting began.
        let countedAt: Date
        let counts: [Count]
    }

    private let store: RegistrationCountStore
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private var known: (figures: Figures, since: ContinuousClock.Instant)?
    private var counting: Task<Figures, any Error>?

    init(_ store: RegistrationCountStore, uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.store = store
        self.uptime = uptime
    }

    /// Figures that are at most ten minutes old. Who asks while they are being counted waits for the same counting, which
    /// goes on if they hang up.
    func figures() async throws -> Figures {
        if let known, uptime() - known.since < Self.lifetime { return known.figures }
        let task = counting ?? Task { try await count() }
        counting = task
        return try await task.value
    }

    private func count() async throws -> Figures {
        defer { counting = nil }
        let (countedAt, since) = (Date(), uptime())
        let counts = try await store.count().map { Count(group: $0.key, number: $0.value) }
        let figures = Figures(countedAt: countedAt, counts: counts.sorted { $0.group < $1.group })
        known = (figures, since)
        return figures
    }
}

extension RegistrationCounts.Group: Comparable {
    static func < (a: Self, b: Self) -> Bool {
        (a.app, a.kind.rawValue, a.environment, a.state.rawValue)
            < (b.app, b.kind.rawValue, b.environment, b.state.rawValue)
    }
}
