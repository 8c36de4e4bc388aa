import DecisionLog
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

extension WorkerIsolationTests {
    func stopVariants() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            let text =
                Self.rules(Self.good, "{ type: news }") + """

                        variants: { a: { share: 50% }, b: { share: 50% } }

                    """
            fixture.currentRules.put(RuleSets([try RuleFile.parse(text, file: "good.yaml")]))
            try await fixture.spoil(
                """
                INSERT INTO rules.stopped_variant VALUES
                    ('Not an app', 'only-b', now(), 'switched-off'), ('bad', 'gone', now(), 'uninstalled'),
                    ('good', 'only-b', now(), 'switched-off')
                """)
            let worker = VariantGuard(
                store: VariantStore(fixture.pool), currentRules: fixture.currentRules, now: { fixture.clock.now },
                logger: .silent)
            try await worker.compare()
            #expect(fixture.currentRules.ruleSets[Self.good]?.stops.keys.sorted() == ["only-b"])
        }
    }
}
