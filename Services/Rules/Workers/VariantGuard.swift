import DecisionLog
import Logging
import Metrics
import Postgres
import PushProtocol
import RuleLanguage
import ServiceKit
import ServiceLifecycle

/// Stops variants of rules that harm: more of their users switch notifications off or uninstall the app than with the
/// first variant (``VariantReport/harm(at:)``). Any number of processes may run it. Runs until graceful shutdown.
struct VariantGuard: Service {
    /// The pause between two reads of the stops. Each process learns of a stop within this time.
    static let pace = Duration.seconds(20)
    /// The time between a stop and its first event, so that all processes have read it.
    static let notice = Duration.seconds(60)
    /// The minimum time between two comparisons.
    static let comparison = Duration.seconds(600)
    /// Comparing takes at most `1/share` of the time.
    static let share = 20
    /// The time before now whose decisions are compared.
    static let window = Duration.seconds(30 * 86_400)

    let store: VariantStore
    let currentRules: CurrentRules
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        async let reading: Void = PeriodicTask(
            every: Self.pace, failureMessage: "Cannot read stopped variants; retrying",
            recoveryMessage: "Reading stopped variants again", logger: logger
        ).run { try await readStops() }
        async let comparing: Void = PeriodicTask(
            every: Self.comparison, failureMessage: "Cannot compare variants; retrying",
            recoveryMessage: "Comparing variants again", logger: logger
        ).runWithOwnPauses {
            let start = ContinuousClock.now
            try await compare()
            return max(Self.comparison, (.now - start) * Self.share)
        }
        _ = await (reading, comparing)
    }

    /// Puts the stops in force.
    func readStops() async throws { currentRules.stop(try await store.stops()) }

    /// Compares the variants of all rules, and stops those that harm.
    func compare() async throws {
        for set in currentRules.ruleSets.ruleSets.values {
            for rule in set.variedRules where !Task.isCancelled {
                try await compare(
                    ComparedRule(name: rule.name, type: rule.type, variants: rule.variants), of: set.app)
            }
        }
        try await readStops()
    }

    private func compare(_ rule: ComparedRule, of app: AppID) async throws {
        let now = try await now()
        let report = try await store.report(of: rule, app: app, from: (now - Self.window).date, until: now.date)
        for (index, row) in report.rows.enumerated().dropFirst()
        where !row.variant.isHeldOut && row.stoppedAt == nil {
            guard let harm = report.harm(at: index),
                try await store.stop(row.variant, of: app, because: harm.harm, at: now + Self.notice)
            else { continue }
            Counter(
                label: "heliograph_rules_variants_stopped_total",
                dimensions: [("app", app.rawValue), ("harm", harm.harm.rawValue)]
            ).increment()
            logger.warning(
                "A harmful variant is stopped; its users get the first variant",
                metadata: [
                    LogKey.app: "\(app)", "rule": "\(row.variant.rule)", LogKey.reason: "\(harm.harm.rawValue)",
                ])
        }
    }
}
