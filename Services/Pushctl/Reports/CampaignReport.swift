import Foundation
import Primitives
import PushProtocol
import RegistryStore

enum CampaignReport {
    static func table(_ campaigns: [CampaignStore.CampaignSummary]) -> TextTable {
        var table = TextTable([
            .left("id"), .left("app"), .left("rule"), .left("state"), .right("done"), .right("devices"),
            .left("audience"), .left("created"),
        ])
        for campaign in campaigns {
            table.add([
                TextTable.Cell(campaign.id.uuidString.lowercased()), TextTable.Cell(campaign.app),
                TextTable.Cell(campaign.rule),
                TextTable.Cell(state(campaign), campaign.rangesDead > 0 ? .red : .plain),
                TextTable.Cell(share(campaign)), TextTable.Cell(campaign.devices), TextTable.Cell(campaign.audience),
                TextTable.Cell(RFC3339.string(from: campaign.created)),
            ])
        }
        return table
    }

    /// All properties of a campaign, one line each.
    static func page(_ campaign: CampaignStore.CampaignSummary) -> [String] {
        let times = [
            ("created", campaign.created as Date?), ("begun", campaign.begun), ("finished", campaign.finished),
        ]
        let rows: [(String, String?)] =
            [
                ("campaign", campaign.id.uuidString.lowercased()), ("app", campaign.app), ("rule", campaign.rule),
                ("audience", campaign.audience), ("state", state(campaign)),
            ] + times.map { ($0.0, $0.1.map(RFC3339.string(from:))) } + [
                ("at most", campaign.rate.map { "\($0) pushes a second" }), ("processed", share(campaign)),
                ("ranges done", "\(campaign.rangesDone) of \(campaign.ranges)"), ("ranges dead", dead(campaign)),
                ("users", "\(campaign.users)"),
                ("without a device", "\(campaign.without)"), ("devices", "\(campaign.devices)"),
                ("messages", "\(campaign.pushes)"), ("a second", pace(campaign).map { "\($0) devices" }),
            ]
        return rows.compactMap { name, value in
            value.map { name.padding(toLength: 18, withPad: " ", startingAt: 0) + $0 }
        }
    }

    /// The state, with the reasons of halted ranges.
    private static func state(_ campaign: CampaignStore.CampaignSummary) -> String {
        guard campaign.rangesDead > 0, campaign.finished == nil else { return campaign.state }
        return "\(campaign.state), halted (\(campaign.deadReasons.joined(separator: ", ")))"
    }

    private static func dead(_ campaign: CampaignStore.CampaignSummary) -> String? {
        guard campaign.rangesDead > 0 else { return nil }
        let reasons = campaign.deadReasons.joined(separator: ", ")
        return "\(campaign.rangesDead) (\(reasons)); `pushctl dead replay` continues them"
    }

    static func bar(_ campaign: CampaignStore.CampaignSummary) -> String {
        let width = 30
        let filled = Int((campaign.fraction * Double(width)).rounded(.down))
        let bar = String(repeating: "█", count: filled) + String(repeating: "·", count: width - filled)
        let rest = left(campaign).map { "  \($0) left" } ?? ""
        return "\(bar)  \(share(campaign))  \(campaign.devices) devices"
            + (pace(campaign).map { "  \($0)/s" } ?? "") + rest + "  \(campaign.state)"
    }

    private static func share(_ campaign: CampaignStore.CampaignSummary) -> String {
        "\(Int((campaign.fraction * 100).rounded(.down))) %"
    }

    /// Devices a second since the start.
    private static func pace(_ campaign: CampaignStore.CampaignSummary) -> Int? {
        guard let begun = campaign.begun else { return nil }
        let seconds = (campaign.finished ?? campaign.now).timeIntervalSince(begun)
        return seconds > 0 && campaign.devices > 0 ? Int(Double(campaign.devices) / seconds) : nil
    }

    private static func left(_ campaign: CampaignStore.CampaignSummary) -> String? {
        guard campaign.state == "running", let begun = campaign.begun, let estimate = campaign.estimate,
            campaign.looked > 0, campaign.looked < estimate
        else { return nil }
        let each = campaign.now.timeIntervalSince(begun) / Double(campaign.looked)
        let seconds = Int(each * Double(estimate - campaign.looked))
        return seconds < 120 ? "\(seconds) s" : "\(seconds / 60) min"
    }
}
