import Foundation
import PushProtocol
import Testing

@testable import DecisionLog

@Suite struct VariantReportTests {
    private static let noon = Date(timeIntervalSince1970: 1_767_268_800)

    private static func row(
        _ name: String, share: Int = 50, isHeldOut: Bool = false, _ users: Int, opened: Int = 0, dismissed: Int = 0,
        off: Int = 0, gone: Int = 0
    ) -> VariantReport.Row {
        VariantReport.Row(
            VariantReport.Variant(name: name, rule: "tip-\(name)", share: share, isHeldOut: isHeldOut),
            VariantReport.Figures(
                users: users, accepted: isHeldOut ? 0 : users, opened: opened, dismissed: dismissed, switchedOff: off,
                uninstalled: gone))
    }

    private static func report(
        _ rows: [VariantReport.Row], _ measure: VariantReport.Measure = .opened
    ) -> VariantReport {
        VariantReport(app: "shop", rule: "tip", from: noon, until: noon, measure: measure, rows: rows)
    }

    @Test func `a report is a table and a sentence about each variant but the first`() {
        let report = Self.report([
            Self.row("plain", 5000, opened: 1000), Self.row("short", 5000, opened: 1250),
        ])
        #expect(
            report.lines == [
                "variant  share  users  accepted  opened  dismissed  switched off  uninstalled",
                "plain      50%   5000      5000    1000          0             0            0",
                "short      50%   5000      5000    1250          0             0            0",
                "",
                "“short” is better: 25.0 % of the users opened it, 20.0 % with “plain” (p = less than 0.001)",
            ])
        #expect(report.json["variants"]?.array?.count == 2)
        #expect(report.json["variants"]?.array?[1]["verdict"] == "better")
        #expect(report.json["variants"]?.array?[0]["verdict"] == nil)
    }

    @Test func `each verdict has its case`() {
        let control = Self.row("a", 5000, opened: 1000, dismissed: 1000, off: 50)
        func verdict(_ row: VariantReport.Row, _ measure: VariantReport.Measure = .opened) -> VariantReport.Verdict {
            Self.report([control, row], measure).verdict(at: 1).verdict
        }
        #expect(verdict(Self.row("b", 99, opened: 99)) == .tooFew)
        #expect(verdict(Self.row("b", 5000, opened: 1010, off: 50)) == .noDifference)
        #expect(verdict(Self.row("b", 5000, opened: 1300, off: 50)) == .better)
        #expect(verdict(Self.row("b", 5000, opened: 700, off: 50)) == .worse)
        // Fewer dismissals are better.
        #expect(verdict(Self.row("b", 5000, dismissed: 700, off: 50), .dismissed) == .better)
        #expect(verdict(Self.row("b", 5000, dismissed: 1300, off: 50), .dismissed) == .worse)
        // Harm counts more than openings.
        #expect(verdict(Self.row("b", 5000, opened: 1300, off: 200)) == .harmful)
        #expect(verdict(Self.row("b", 5000, opened: 1300, off: 50, gone: 200)) == .harmful)
        // Fewer users that switch off are no harm.
        #expect(verdict(Self.row("b", 5000, opened: 1300, off: 0)) == .better)
    }

    @Test func `with a hold-out, only users that switched off are compared`() {
        let heldOut = Self.row("none", isHeldOut: true, 5000, off: 20)
        func verdict(_ row: VariantReport.Row) -> VariantReport.Verdict {
            Self.report([heldOut, row]).verdict(at: 1).verdict
        }
        #expect(verdict(Self.row("b", 5000, opened: 4000, off: 150)) == .harmful)
        #expect(verdict(Self.row("b", 5000, opened: 4000, off: 22)) == .notHarmful)
        #expect(verdict(Self.row("b", 5, opened: 5)) == .tooFew)
        let report = Self.report([heldOut, Self.row("b", 5000, off: 150)])
        #expect(report.lines[1].hasPrefix("none (hold-out)"))
        #expect(report.lines.last?.contains("“b” is harmful, remove it: 3.0 % of the users switched it off") == true)
    }

    @Test func `with more variants, each needs stronger evidence`() {
        let control = Self.row("a", 5000, opened: 1000)
        let close = Self.row("b", 5000, opened: 1142)
        let two = Self.report([control, close])
        #expect(two.verdict(at: 1).pValue < 0.05 && two.verdict(at: 1).pValue > 0.0125)
        #expect(two.verdict(at: 1).verdict == .better)
        #expect(Self.report([control, close, close, close, close]).verdict(at: 1).verdict == .noDifference)
    }

    @Test func `each harm has half of the level, and is named`() throws {
        let control = Self.row("a", 5000, off: 50, gone: 50)
        func harm(_ row: VariantReport.Row) -> VariantReport.Harm? { Self.report([control, row]).harm(at: 1)?.harm }
        #expect(harm(Self.row("b", 5000, off: 200, gone: 60)) == .switchedOff)
        #expect(harm(Self.row("b", 5000, off: 60, gone: 200)) == .uninstalled)
        #expect(harm(Self.row("b", 5000, off: 150, gone: 200)) == .uninstalled)
        #expect(harm(Self.row("b", 5000, off: 60, gone: 60)) == nil)
        #expect(harm(Self.row("b", 5000, off: 0, gone: 0)) == nil)
        let report = Self.report([control, Self.row("b", 5000, off: 60, gone: 200)])
        #expect(report.lines.last?.contains("4.0 % of the users uninstalled the app, 1.0 % with “a”") == true)
        // A p-value between the half and the whole level is no harm.
        let close = try #require(
            (51...400).first { off in
                let found = SequentialComparison(
                    control: .init(users: 5000, hits: 50), treatment: .init(users: 5000, hits: off))
                return found.pValue < VariantReport.level && found.pValue > VariantReport.level / 2
            })
        #expect(harm(Self.row("b", 5000, off: close, gone: 50)) == nil)
    }

    @Test func `a stopped variant says since when, and which variant its users get`() {
        var row = Self.row("b", 5000, off: 200)
        row.stoppedAt = Self.noon
        let report = Self.report([Self.row("a", 5000, off: 50), row])
        let noon = RFC3339.string(from: Self.noon)
        #expect(
            report.lines.last
                == "“b” was stopped at \(noon), because it was harmful. Its users get “a”. Remove it, or give it another "
                + "name to try it again")
        #expect(report.json["variants"]?.array?[1]["stopped_at"] == .string(noon))
        #expect(report.json["variants"]?.array?[0]["stopped_at"] == nil)
    }
}
