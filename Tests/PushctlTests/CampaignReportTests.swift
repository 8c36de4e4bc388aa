import Foundation
import Primitives
import PushProtocol
import Testing

@testable import Pushctl
@testable import RegistryStore

@Suite struct CampaignReportTests {
    /// A campaign that began ten seconds ago, with two ranges, one of them done.
    private var campaign: CampaignStore.CampaignSummary {
        let now = Date(timeIntervalSince1970: 1_767_225_600)
        return CampaignStore.CampaignSummary(
            id: UUID(), app: "family-portal", rule: "news", audience: "everyone", state: "running", created: now - 11,
            begun: now - 10, rate: 50, estimate: 1000, looked: 300, users: 240, devices: 300, pushes: 3, without: 5,
            ranges: 2, rangesDone: 1, rangesDead: 0, deadReasons: [], now: now)
    }

    private func line(_ campaign: CampaignStore.CampaignSummary) -> String {
        CampaignReport.table([campaign]).lines()[1]
    }

    @Test func `line, page and bar show the progress`() {
        #expect(line(campaign).contains("  running  30 %      300  everyone  "))
        let json = campaign.json
        #expect(json["fraction"] == .double(0.3) && json["rate"] == 50 && json["finished_at"] == .null)
        let page = CampaignReport.page(campaign)
        #expect(page.contains("a second          30 devices"))
        #expect(page.contains("ranges done       1 of 2"))
        #expect(CampaignReport.bar(campaign).hasPrefix("█████████·····················  30 %  300 devices"))
        #expect(CampaignReport.bar(campaign).hasSuffix("s left  running"))
        var done = campaign
        (done.state, done.finished) = ("done", done.now)
        #expect(done.fraction == 1)
    }

    @Test func `a range with a dead-lettered cursor is shown with its reason`() {
        var halted = campaign
        (halted.rangesDead, halted.deadReasons) = (1, ["campaign-step-failed"])
        #expect(line(halted).contains("running, halted (campaign-step-failed)"))
        #expect(CampaignReport.page(halted).contains { $0.hasPrefix("ranges dead       1 (campaign-step-failed)") })
        #expect(!line(campaign).contains("halted"))
    }

    @Test func `progress stays below 100 % when the audience exceeds the estimate`() {
        var large = campaign
        large.looked = 1800
        #expect(large.fraction == 0.99)
    }
}
