import ArgumentParser
import FeedbackStore
import Foundation
import Primitives
import PushProtocol

/// `pushctl feedback …`: decisions about evidence against tokens.
struct FeedbackCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feedback", abstract: "Review evidence against tokens.", subcommands: [Quarantine.self])

    struct Quarantine: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "quarantine",
            abstract: "Review quarantined evidence: a spike of bad tokens, or evidence that is uncertain.",
            subcommands: [List.self, Show.self, Release.self, Discard.self])
    }

    /// `--app`, for commands about one app's quarantine or all.
    struct AppOption: ParsableArguments {
        @Option(help: "Only this app.") var app: String?

        func parsed() throws -> AppID? {
            try app.map { try AppID(named: $0) }
        }
    }

    struct RegistrationArguments: ParsableArguments {
        @Argument(help: "The device ids, as `list` prints them.") var devices: [String] = []
        @Flag(help: "Everything in quarantine. Resets the guards until the next spike.")
        var all = false

        func selected() throws -> QuarantineStore.RegistrationSelection {
            try Self.selected(devices: devices, all: all)
        }

        static func selected(devices: [String], all: Bool) throws -> QuarantineStore.RegistrationSelection {
            switch (devices.isEmpty, all) {
            case (true, true): return .all
            case (false, false): return .devices(try devices.map(UUID.init(device:)))
            case (true, false): throw CommandError("name devices, or give --all", .usage)
            case (false, true): throw CommandError("either name devices or give --all, not both", .usage)
            }
        }
    }
}

extension FeedbackCommand.Quarantine {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List quarantined registrations, the latest first, and tripped guards.")
        @OptionGroup var scope: FeedbackCommand.AppOption
        @Option(help: "The maximum number to print.") var limit = 100
        @OptionGroup var output: OutputOption

        func run() async throws {
            let app = try scope.parsed()
            let limit = max(1, limit)
            let (guards, list) = try await withDatabase { database in
                let store = QuarantineStore(database)
                return (try await store.guards(app: app), try await store.list(app: app, limit: limit))
            }
            try output.write(
                QuarantineReport.json(guards: guards, entries: list.entries, total: list.total),
                text: QuarantineReport.lines(guards: guards, entries: list.entries, total: list.total))
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the evidence against one registration and its outcome.")
        @Argument(help: "The device id, as `list` prints it.") var device: String
        @OptionGroup var output: OutputOption

        private static let most = 200

        func run() async throws {
            let device = try UUID(device: device)
            let evidence = try await withDatabase { database in
                try await QuarantineStore(database).evidence(of: device, limit: Self.most)
            }
            let table = QuarantineReport.table(evidence)
            try output.write(
                ["device": .id(device), "evidence": .array(evidence.map(QuarantineReport.json))],
                text: table.lines(orNone: "no evidence about \(device.uuidString.lowercased())")
                    + (evidence.count == Self.most ? ["only the latest \(Self.most) are shown"] : []))
        }
    }

    struct Release: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Accept the evidence: deactivate the registrations, unless they were renewed since.")
        @OptionGroup var scope: FeedbackCommand.AppOption
        @OptionGroup var selection: FeedbackCommand.RegistrationArguments
        @OptionGroup var output: OutputOption

        func run() async throws {
            let (selected, app) = (try selection.selected(), try scope.parsed())
            let count = try await withDatabase {
                try await QuarantineStore($0).apply(.release, about: selected, app: app, now: Date())
            }
            let effect = "feedback deactivates those that were not renewed since"
            try output.write(
                ["released": .number(count)], text: ["released \(count) registrations: \(effect)"])
        }
    }

    struct Discard: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reject the evidence: keep the registrations.")
        @OptionGroup var scope: FeedbackCommand.AppOption
        @OptionGroup var selection: FeedbackCommand.RegistrationArguments
        @OptionGroup var output: OutputOption

        func run() async throws {
            let (selected, app) = (try selection.selected(), try scope.parsed())
            let count = try await withDatabase {
                try await QuarantineStore($0).apply(.discard, about: selected, app: app, now: Date())
            }
            try output.write(
                ["discarded": .number(count)], text: ["discarded the evidence against \(count) registrations"])
        }
    }
}
