import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Compares the decisions of the dry run with those of the service for random rule files, users and events.
///
/// `HELIOGRAPH_REHEARSALS` sets the number of scenarios, and `HELIOGRAPH_FUZZ_SEED` the first one.
@Suite(.timeLimit(.minutes(60))) struct DryRunDifferentialTests {
    static let count = ProcessInfo.processInfo.environment["HELIOGRAPH_REHEARSALS"].flatMap(Int.init) ?? 700
    static let seed = ProcessInfo.processInfo.environment["HELIOGRAPH_FUZZ_SEED"].flatMap(UInt64.init) ?? 5000
    /// The number of scenarios that share a database.
    static let world = 100
    static let end = RandomScenario.start + .seconds(60 * RandomScenario.minutes + 3 * 86_400)

    func predicted(_ scenario: RandomScenario) throws -> ScenarioResult {
        var dryRun = DryRun(RuleSets([scenario.rules]))
        for (id, settings) in scenario.people {
            dryRun.people[PersonKey(app: scenario.rules.app, user: user(id)), default: Person()].settings = settings
        }
        for one in scenario.occurrences { dryRun.process(one.event, at: one.at) }
        dryRun.advance(to: Self.end)
        var result = ScenarioResult()
        for prediction in dryRun.predictions {
            if prediction.rule != BadgeCorrection.rule {
                result.decisions.append(
                    "\(RFC3339.string(from: prediction.at.date)) \(prediction.event) \(prediction.rule) \(prediction.user) \(prediction.decision.readableText)"
                )
            }
            if let notification = prediction.notification { try result.push(notification, at: prediction.at) }
        }
        for (person, unread) in dryRun.unread where !unread.isEmpty {
            result.unread[person.user.rawValue] = unread.count
        }
        return result
    }

    @Test func `the dry run and the service decide alike for random rules, users and events`() async throws {
        var decisions = 0
        var reasons: Set<Substring> = []
        for first in stride(from: 0, to: Self.count, by: Self.world) {
            let seeds = (first..<min(first + Self.world, Self.count)).map { Self.seed + UInt64($0) }
            let scenarios = seeds.map { RandomScenario(seed: $0) }
            let served = try await RulesDatabase.withPool { pool in
                var service = ServedScenarios(scenarios, pool)
                return try await service.run(until: Self.end)
            }
            for scenario in scenarios {
                var service = served[scenario.app] ?? ScenarioResult()
                var dry = try predicted(scenario)
                service.sort()
                dry.sort()
                decisions += dry.decisions.count
                reasons.formUnion(dry.decisions.compactMap { $0.split(separator: " ").last })
                guard service != dry else { continue }
                Issue.record("\(difference(service, dry, of: scenario))")
                return
            }
        }
        // The scenarios must produce enough decisions to be a useful test.
        #expect(decisions >= 5 * Self.count, "\(decisions) decisions")
        let seldom: Set<RuleDecision.Cause> = [
            .audience, .broadcast, .criticalLimit, .heldTooLong, .heldTooOften, .nobody, .ruleGone, .segment,
            .unsendable,
            // `RevokedSurfaceTests` reaches it.
            .surfaceEnded,
            // `DryRunReplacementTests` reaches them.
            .replacement, .wordsReplaced, .alreadyRead, .overtaken, .nothingToReplace, .tooMany,
            // `VariantTests` reaches it.
            .holdOut,
        ]
        for cause in RuleDecision.Cause.allCases where !seldom.contains(cause) {
            #expect(reasons.contains("(\(cause.rawValue))"), "no scenario ends as \(cause.rawValue)")
        }
    }

    private func difference(_ service: ScenarioResult, _ dry: ScenarioResult, of scenario: RandomScenario) -> String {
        func only(_ a: [String], _ b: [String]) -> [String] {
            var rest = b
            return a.filter { line in
                guard let index = rest.firstIndex(of: line) else { return true }
                rest.remove(at: index)
                return false
            }
        }
        let events = scenario.occurrences.map { one in
            let time = one.event.time.map { " time \(RFC3339.string(from: $0))" } ?? ""
            return "\(RFC3339.string(from: one.at.date)) \(one.event.id) \(one.event.type)\(time) \(one.event.data)"
        }
        let parts: [(String, [String])] = [
            ("only the service decides", only(service.decisions, dry.decisions)),
            ("only the dry run decides", only(dry.decisions, service.decisions)),
            ("only the service pushes", only(service.pushes, dry.pushes)),
            ("only the dry run pushes", only(dry.pushes, service.pushes)),
            ("unread", ["\(service.unread) by the service, \(dry.unread) by the dry run"]),
            ("rules", [scenario.text]), ("people", scenario.people.map { "\($0)" }), ("events", events),
            ("all decisions of the service", service.decisions),
        ]
        return parts.map { "\($0.0):\n  " + $0.1.joined(separator: "\n  ") }.joined(separator: "\n")
    }
}
