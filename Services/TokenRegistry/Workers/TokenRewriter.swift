import Logging
import Messaging
import Metrics
import ServiceKit
import ServiceLifecycle
import Synchronization
import TokenEncryption

/// Reads the key file again, and rewrites stored tokens that are in clear or under another key than the first of the file
/// (``TokenRewriteStore``). Makes way for interactive notifications, as campaigns do. Any number of processes may run it. Runs
/// until graceful shutdown.
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_registry_tokens` | gauge | key | stored tokens by the id of their key, `plain` in clear, at the end of the last walk through the table |
/// | `heliograph_registry_tokens_rewritten_total` | counter | | tokens that this process rewrote under the first key of the file |
final class TokenRewriter: Service {
    /// Between two looks at the key file.
    static let pace = Duration.seconds(5)
    /// Between two steps of a walk: at least this, and three times as long as the step took.
    static let stepPause = Duration.milliseconds(100)
    /// Between two steps of a walk after one that found nothing to rewrite.
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
            every: Self.pace, failureMessage: "Stored device tokens cannot be rewritten now",
            recoveryMessage: "Stored device tokens are rewritten again", logger: logger
        ).runWithOwnPauses { try await self.step() }
    }

    /// Makes one step.
    ///
    /// - Returns: how long to wait before the next.
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
                "Every stored device token is under the first key of the file", metadata: ["key": "\(writingKeyID)"])
        } else {
            logger.warning(
                "Stored device tokens are left under other keys, and cannot be rewritten; see heliograph_registry_tokens",
                metadata: ["key": "\(writingKeyID)", "left": "\(others)"])
        }
    }
}
