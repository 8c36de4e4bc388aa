import ArgumentParser
import Foundation
import PushProtocol

/// `pushctl campaigns …`: what is told to many, how far it has come, and its reins.
struct CampaignsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "campaigns", abstract: "Notifications to audiences: their progress, and holding them up.",
        subcommands: [List.self, Show.self, Pause.self, Resume.self, Cancel.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lists campaigns, the latest first.")
        @Option(help: "Only this app's; every app's when it is not given.") var app: String?
        @Flag(help: "Only those that are not over.") var unfinished = false
        @Option(help: "How many to print.") var limit = 50

        func run() async throws {
            let app = try app.map { try AppID(named: $0) }
            let (unfinished, limit) = (unfinished, max(1, limit))
            let campaigns = try await withDatabase {
                try await CampaignBook($0).list(app: app, unfinished: unfinished, limit: limit)
            }
            if campaigns.isEmpty { print("no campaign is known") }
            for campaign in campaigns { print(CampaignReport.line(campaign)) }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows one campaign.", discussion: "With --follow, until it is over, once a second.")
        @OptionGroup var choice: Choice
        @Flag(help: "Keeps showing how far it has come, until it is over.") var follow = false

        func run() async throws {
            let id = try choice.id()
            let follow = follow
            try await withDatabase { database in
                let book = CampaignBook(database)
                var campaign = try await Self.find(id, in: book)
                var line = ProgressLine()
                while follow, campaign.finished == nil {
                    let bar = CampaignReport.bar(campaign)
                    line.show(bar, plain: bar)
                    try await Task.sleep(for: .seconds(1))
                    campaign = try await Self.find(id, in: book)
                }
                if follow { line.clear() }
                for line in CampaignReport.page(campaign) { print(line) }
            }
        }

        private static func find(_ id: UUID, in book: CampaignBook) async throws -> CampaignBook.Entry {
            guard let campaign = try await book.campaign(id) else {
                throw Refusal("no campaign has the id \(id.uuidString.lowercased())")
            }
            return campaign
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Holds a campaign up; what is in the senders' queues is sent all the same.")
        @OptionGroup var choice: Choice

        func run() async throws { try await choice.decide(.pause, done: "paused", otherwise: "it is not running") }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lets a paused campaign go on where it stopped, within a few seconds.")
        @OptionGroup var choice: Choice

        func run() async throws { try await choice.decide(.resume, done: "resumed", otherwise: "it is not paused") }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends a campaign for good; what is in the senders' queues is sent all the same.")
        @OptionGroup var choice: Choice

        func run() async throws { try await choice.decide(.cancel, done: "cancelled", otherwise: "it is over") }
    }

    /// The campaign that a command is about.
    struct Choice: ParsableArguments {
        @Argument(help: "The campaign, as `list` prints it.") var campaign: String

        func id() throws -> UUID {
            guard let id = UUID(uuidString: campaign) else { throw Refusal("“\(campaign)” is not a campaign's id") }
            return id
        }

        func decide(_ decision: CampaignBook.Decision, done: String, otherwise: String) async throws {
            let id = try id()
            let (found, changed) = try await withDatabase { database in
                let book = CampaignBook(database)
                let changed = try await book.decide(decision, about: id)
                return (try await book.campaign(id) != nil, changed)
            }
            guard found else { throw Refusal("no campaign has the id \(campaign)") }
            guard changed else { throw Refusal("nothing to do: \(otherwise)") }
            print(done)
        }
    }
}
