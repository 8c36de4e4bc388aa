import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage

/// Recorded decisions are made again exactly, from the stored text of their recordings.
///
/// `HELIOGRAPH_REPLAYS` sets the number of scenarios, such as 10000, and `HELIOGRAPH_FUZZ_SEED` the first one.
@Suite(.timeLimit(.minutes(60))) struct RecordedReplayTests {
    static let count = ProcessInfo.processInfo.environment["HELIOGRAPH_REPLAYS"].flatMap(Int.init) ?? 500
    static let seed = ProcessInfo.processInfo.environment["HELIOGRAPH_FUZZ_SEED"].flatMap(UInt64.init) ?? 7_000

    private struct Tally: Sendable {
        var decisions = 0
        var kinds: [String: Int] = [:]
        var reasons: Set<String> = []
        var failures: [String] = []
    }

    @Test func `the rules that made random scenarios of decisions make them again`() async throws {
        let tally = await withTaskGroup(of: Tally.self) { group in
            let parts = 8
            for part in 0..<parts {
                group.addTask {
                    var tally = Tally()
                    for number in stride(from: part, to: Self.count, by: parts) {
                        replay(Self.seed + UInt64(number), &tally)
                        // Other tests run meanwhile.
                        await Task.yield()
                    }
                    return tally
                }
            }
            return await group.reduce(into: Tally()) { all, one in
                all.decisions += one.decisions
                all.kinds.merge(one.kinds, uniquingKeysWith: +)
                all.reasons.formUnion(one.reasons)
                all.failures += one.failures
            }
        }
        #expect(tally.failures.isEmpty, "\(tally.failures.prefix(3).joined(separator: "\n"))")
        #expect(tally.decisions >= 5 * Self.count, "\(tally.decisions) decisions")
        #expect(Set(tally.kinds.keys) == ["event", "page", "held", "digest"], "\(tally.kinds)")
        let seldom: Set<RuleDecision.Cause> = [
            .audience, .broadcast, .segment, .nobody, .unsendable, .heldTooOften, .heldTooLong,
            // `VariantTests` reaches it.
            .holdOut,
            // `RevokedSurfaceTests` reaches it.
            .surfaceEnded,
        ]
        // Few scenarios do not reach all of them.
        for cause in RuleDecision.Cause.allCases where !seldom.contains(cause) && Self.count >= 10_000 {
            #expect(tally.reasons.contains(cause.rawValue), "no decision with the reason \(cause.rawValue)")
        }
    }

    private func replay(_ seed: UInt64, _ tally: inout Tally) {
        let recorded = RecordedScenario(seed: seed)
        let ruleSets = RuleSets([recorded.scenario.rules])
        var events: [UUID: StoredEvent] = [:]
        guard recorded.recordings.count == recorded.decisions.count else {
            return tally.failures.append("seed \(seed): \(recorded.recordings.count) recordings")
        }
        for (recording, decisions) in zip(recorded.recordings, recorded.decisions) {
            do {
                var stored = recording
                stored.body = try #require(try Recording.Body(kind: recording.kind, text: try recording.text()))
                if case .event(let event) = stored.body { events[recording.event] = event.event }
                let again = try stored.replayed(by: ruleSets) { events[$0] }
                tally.kinds[recording.kind, default: 0] += 1
                tally.decisions += decisions.count
                tally.reasons.formUnion(decisions.map(\.decision.reason.rawValue))
                if again != decisions || again.count != stored.count {
                    tally.failures.append("seed \(seed), \(recording.kind): \(again) instead of \(decisions)")
                }
            } catch {
                tally.failures.append("seed \(seed), \(recording.kind): \(error)")
            }
        }
    }

    @Test func `other rules do not replay a recording`() throws {
        let recorded = (0..<100).lazy.map { RecordedScenario(seed: $0) }
        let one = try #require(recorded.first { !$0.recordings.isEmpty })
        let changed = try RuleFile.parse(one.scenario.text + "\n# changed", file: "\(one.scenario.app).yaml")
        #expect(throws: ReplayObstacle.otherRules) {
            try one.recordings[0].replayed(by: RuleSets([changed])) { _ in nil }
        }
    }

    @Test func `a changed input changes a decision`() throws {
        // The comparison must be able to fail: without the recorded settings, some decision differs.
        var differs = false
        for seed in UInt64(0)..<40 where !differs {
            let recorded = RecordedScenario(seed: seed)
            let ruleSets = RuleSets([recorded.scenario.rules])
            for (recording, decisions) in zip(recorded.recordings, recorded.decisions) {
                guard case .event(var event) = recording.body else { continue }
                event.inputs = RecordedInputs(groups: event.inputs.groups)
                var other = recording
                other.body = .event(event)
                differs = differs || (try? other.replayed(by: ruleSets) { _ in nil }) != decisions
            }
        }
        #expect(differs)
    }

    @Test func `names are whole values, subjects and nested members, and no longer text`() throws {
        var event = DomainEvent(
            app: AppID(rawValue: "test")!, id: "e", source: "/up", type: "t", subject: "sub",
            data: [
                "author": "erin", "votes": ["kim": 3], "ids": [7, "8"], "text": "hello erin", "ratio": 0.5, "no": nil,
            ])
        #expect(event.names == ["sub", "erin", "kim", "3", "7", "8", "hello erin"])
        event.subject = nil
        event.data = .object([:])
        #expect(event.names.isEmpty)
        let app = event.app
        #expect(RecordedNames.digest("erin", of: app) == RecordedNames.digest("erin", of: app))
        #expect(
            RecordedNames.digest("erin", of: app) != RecordedNames.digest("erin", of: AppID(rawValue: "other")!))
    }
}
