import ArgumentParser
import Foundation
import PushProtocol
import RegistryStore

/// `pushctl campaigns …`: progress of campaigns; pause, resume and cancel.
struct CampaignsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "campaigns", abstract: "Show, pause, resume or cancel campaigns.",
        subcommands: [List.self, Show.self, Pause.self, Resume.self, Cancel.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List campaigns, the latest first.")
        @Option(help: "Only campaigns of this app.") var app: String?
        @Flag(help: "Only campaigns that are not finished.") var unfinished = false
        @Option(help: "The maximum number to print.") var limit = 50
        @OptionGroup var output: OutputOption

        func run() async throws {
            let app = try app.map { try AppID(named: $0) }
            let (unfinished, limit) = (unfinished, max(1, limit))
            let campaigns = try await withDatabase {
                try await CampaignStore($0).summaries(app: app, unfinished: unfinished, limit: limit)
            }
            try output.write(
                ["campaigns": .array(campaigns.map(\.json))],
                text: CampaignReport.table(campaigns).lines(orNone: "no campaigns"))
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one campaign.", discussion: "With --follow, refresh once a second until it finishes.")
        @OptionGroup var target: CampaignArgument
        @Flag(help: "Refresh the progress until the campaign finishes.") var follow = false
        @OptionGroup var output: OutputOption

        func run() async throws {
            let id = try target.id()
            let follow = follow
            let campaign = try await withDatabase { database in
                let store = CampaignStore(database)
                var campaign = try await Self.find(id, in: store)
                var line = ProgressLine()
                while follow, campaign.finished == nil {
                    let bar = CampaignReport.bar(campaign)
                    line.show(bar, plain: bar)
                    try await Task.sleep(for: .seconds(1))
                    campaign = try await Self.find(id, in: store)
                }
                if follow { line.clear() }
                return campaign
            }
            try output.write(campaign.json, text: CampaignReport.page(campaign))
        }

        private static func find(_ id: UUID, in store: CampaignStore) async throws
            -> CampaignStore.CampaignSummary
        {
            guard let campaign = try await store.summary(of: id) else {
                throw CommandError("no campaign has the id \(id.uuidString.lowercased())", .notFound)
            }
            return campaign
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Pause a campaign. Pushes in the senders' queues are still sent.")
        @OptionGroup var target: CampaignArgument
        @OptionGroup var output: OutputOption

        func run() async throws {
            try await target.apply(.pause, done: "paused", otherwise: "the campaign is not running", output)
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resume a paused campaign within a few seconds.")
        @OptionGroup var target: CampaignArgument
        @OptionGroup var output: OutputOption

        func run() async throws {
            try await target.apply(.resume, done: "resumed", otherwise: "the campaign is not paused", output)
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancel a campaign permanently. Pushes in the senders' queues are still sent.")
        @OptionGroup var target: CampaignArgument
        @OptionGroup var output: OutputOption

        func run() async throws {
            try await target.apply(.cancel, done: "cancelled", otherwise: "the campaign is finished", output)
        }
    }

    struct CampaignArgument: ParsableArguments {
        @Argument(help: "The campaign's id, as `list` prints it.") var campaign: String

        func id() throws -> UUID {
            guard let id = UUID(uuidString: campaign) else {
                throw CommandError("“\(campaign)” is not a campaign's id", .usage)
            }
            return id
        }

        func apply(
            _ decision: CampaignStore.CampaignAction, done: String, otherwise: String, _ output: OutputOption
        ) async throws {
            let id = try id()
            let (found, changed) = try await withDatabase { database in
                let store = CampaignStore(database)
                let changed = try await store.apply(decision, to: id)
                return (try await store.summary(of: id) != nil, changed)
            }
            guard found else { throw CommandError("no campaign has the id \(campaign)", .notFound) }
            guard changed else { throw CommandError("nothing to do: \(otherwise)") }
            try output.write(["id": .id(id), "state": .string(decision.state)], text: [done])
        }
    }
}
