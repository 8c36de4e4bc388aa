import FoundationEssentials
import RegistryStore

/// Counts registrations on request and caches the result, since counting reads the whole table.
actor RegistrationCounts {
    /// How long a result is cached.
    static let lifetime = Duration.seconds(600)

    typealias Group = RegistrationCountStore.Group

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

    /// Returns counts at most ten minutes old. Concurrent callers share one count, which continues if a caller
    /// disconnects.
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
