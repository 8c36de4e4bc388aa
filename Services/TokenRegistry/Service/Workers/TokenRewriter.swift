import Logging
import Messaging
import Metrics
import RegistryStore
import ServiceKit
import ServiceLifecycle
import Synchronization
import TokenEncryption

/// Rereads the key file, and rewrites stored tokens that do not use its first key (``TokenRewriteStore``). Slows down
/// while interactive notifications arrive, as campaigns do. Any number of processes may run it. Runs until graceful
/// shutdown.
final class TokenRewriter: Service {
    /// Time between two reads of the key file.
    static let pace = Duration.seconds(5)
    /// Minimum time between two steps of a walk. A step is also followed by a pause of three times its duration.
    static let stepPause = Duration.milliseconds(100)
    /// Time between two steps of a walk after one that rewrote nothing.
    static let checkPause = Duration.seconds(1)

    private let store: TokenRewriteStore
    private let bulkThrottle: BulkThrottle
    private let logger: Logger
    private let known = Mutex(TokenRewriteStore.Counts())

    init(store: TokenRewriteStore, bulkThrottle: BulkThrottle, logger: Logger) {
        self.store = store
        self.bulkThrottle = bulkThrottle
        self.logger = logger
    }

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot rewrite stored device tokens; retrying",
            recoveryMessage: "Rewriting stored device tokens again", logger: logger
        ).runWithOwnPauses { try await self.step() }
    }

    /// Runs one step.
    ///
    /// - Returns: the time until the next step.
    func step() async throws -> Duration {
        store.tokens.refresh(after: Self.pace)
        let begun = ContinuousClock.now
        let progress = try await store.advance()
        let took = ContinuousClock.now - begun
        switch progress {
        case .elsewhere: return Self.pace
        case .resting(let counts):
            tell(counts)
            return Self.pace
        case .more(let rewritten, let counts), .finished(let rewritten, let counts):
            tell(counts)
            Counter(label: "heliograph_registry_tokens_rewritten_total").increment(by: rewritten)
            if counts.isSettled, rewritten == 0 { return Self.checkPause }
            return max(Self.stepPause, min(took * 3, Self.pace), bulkThrottle.pause(after: took))
        }
    }

    private func tell(_ counts: TokenRewriteStore.Counts) {
        let former = known.withLock { known in
            defer { known = counts }
            return known
        }
        for key in Set(counts.numbers.keys).union(former.numbers.keys) {
            Gauge(label: "heliograph_registry_tokens", dimensions: [("key", key)])
                .record(counts.numbers[key, default: 0])
        }
        guard counts.isSettled, !former.isSettled else { return }
        let writingKeyID = store.tokens.cipher.writingKeyID
        let others = counts.numbers.filter { $0.key != writingKeyID }.values.reduce(0, +)
        if others == 0 {
            logger.notice(
                "All stored device tokens use the first key of the file", metadata: ["key_id": "\(writingKeyID)"])
        } else {
            logger.warning(
                "Some stored device tokens use other keys and cannot be rewritten; see heliograph_registry_tokens",
                metadata: ["key_id": "\(writingKeyID)", "left": "\(others)"])
        }
    }
}
