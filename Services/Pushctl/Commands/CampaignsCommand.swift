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

        func run() async throws {
            let app = try app.map { try AppID(named: $0) }
            let (unfinished, limit) = (unfinished, max(1, limit))
            let campaigns = try await withDatabase {
                try await CampaignStore($0).summaries(app: app, unfinished: unfinished, limit: limit)
            }
            if campaigns.isEmpty { print("no campaigns") }
            for campaign in campaigns { print(CampaignReport.line(campaign)) }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one campaign.", discussion: "With --follow, refresh once a second until it finishes.")
        @OptionGroup var target: CampaignArgument
        @Flag(help: "Refresh the progress until the campaign finishes.") var follow = false

        func run() async throws {
            let id = try target.id()
            let follow = follow
            try await withDatabase { database in
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
                for line in CampaignReport.page(campaign) { print(line) }
            }
        }

        private static func find(_ id: UUID, in store: CampaignStore) async throws
            -> CampaignStore.CampaignSummary
        {
            guard let campaign = try await store.summary(of: id) else {
                throw CommandError("no campaign has the id \(id.uuidString.lowercased())")
            }
            return campaign
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Pause a campaign. Pushes in the senders' queues are still sent.")
        @OptionGroup var target: CampaignArgument

        func run() async throws {
            try await target.apply(.pause, done: "paused", otherwise: "the campaign is not running")
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resume a paused campaign within a few seconds.")
        @OptionGroup var target: CampaignArgument

        func run() async throws {
            try await target.apply(.resume, done: "resumed", otherwise: "the campaign is not paused")
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancel a campaign permanently. Pushes in the senders' queues are still sent.")
        @OptionGroup var target: CampaignArgument

        func run() async throws {
            try await target.apply(.cancel, done: "cancelled", otherwise: "the campaign is finished")
        }
    }

    /// The campaign argument of a command.
    struct CampaignArgument: ParsableArguments {
        @Argument(help: "The campaign's id, as `list` prints it.") var campaign: String

        func id() throws -> UUID {
            guard let id = UUID(uuidString: campaign) else {
                throw CommandError("“\(campaign)” is not a campaign's id")
            }
            return id
        }

        func apply(_ decision: CampaignStore.CampaignAction, done: String, otherwise: String) async throws {
            let id = try id()
            let (found, changed) = try await withDatabase { database in
                let store = CampaignStore(database)
                let changed = try await store.apply(decision, to: id)
                return (try await store.summary(of: id) != nil, changed)
            }
            guard found else { throw CommandError("no campaign has the id \(campaign)") }
            guard changed else { throw CommandError("nothing to do: \(otherwise)") }
            print(done)
        }
    }
}
