import ArgumentParser
import Foundation
import PushProtocol

/// `pushctl feedback …`: what an operator decides about evidence.
struct FeedbackCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feedback", abstract: "What providers say against tokens.", subcommands: [Quarantine.self])

    struct Quarantine: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "quarantine",
            abstract: "Invalidations that were not applied: far more came than usual, or the evidence is doubtful.",
            subcommands: [List.self, Show.self, Release.self, Discard.self])
    }

    /// `--app`, for every command that looks at one app's quarantine or at all of them.
    struct Scope: ParsableArguments {
        @Option(help: "Only this app's; every app's when it is not given.") var app: String?

        func parsed() throws -> AppID? {
            try app.map { try AppID(named: $0) }
        }
    }

    /// Which registrations a decision is about.
    struct Selection: ParsableArguments {
        @Argument(help: "The devices, as `list` prints them.") var devices: [String] = []
        @Flag(help: "Everything that is quarantined now. The guards are at rest then, until the next storm.")
        var all = false

        func choice() throws -> QuarantineStore.Choice { try Self.choice(devices: devices, all: all) }

        static func choice(devices: [String], all: Bool) throws -> QuarantineStore.Choice {
            switch (devices.isEmpty, all) {
            case (true, true): return .all
            case (false, false): return .devices(try devices.map(device))
            case (true, false): throw Refusal("which? Name devices, or say --all")
            case (false, true): throw Refusal("either name devices or say --all, not both")
            }
        }

        static func device(_ text: String) throws -> UUID {
            guard let id = UUID(uuidString: text) else { throw Refusal("“\(text)” is not a device's id") }
            return id
        }
    }
}

extension FeedbackCommand.Quarantine {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the registrations in quarantine, the latest first, and the guards that are tripped.")
        @OptionGroup var scope: FeedbackCommand.Scope
        @Option(help: "How many to print.") var limit = 100

        func run() async throws {
            let app = try scope.parsed()
            let limit = max(1, limit)
            let (guards, list) = try await withDatabase { database in
                let store = QuarantineStore(database)
                return (try await store.guards(app: app), try await store.list(app: app, limit: limit))
            }
            for line in QuarantineReport.lines(guards: guards, entries: list.entries, total: list.total) { print(line) }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows what was said about one registration, and what became of it.")
        @Argument(help: "The device, as `list` prints it.") var device: String

        private static let most = 200

        func run() async throws {
            let device = try FeedbackCommand.Selection.device(device)
            let evidence = try await withDatabase { database in
                try await QuarantineStore(database).evidence(of: device, limit: Self.most)
            }
            if evidence.isEmpty { print("nothing was ever said about \(device.uuidString.lowercased())") }
            for piece in evidence { print(QuarantineReport.line(piece)) }
            if evidence.count == Self.most { print("these are the latest \(Self.most)") }
        }
    }

    struct Release: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Believes the evidence: the registrations are deactivated, but for those taken again since.")
        @OptionGroup var scope: FeedbackCommand.Scope
        @OptionGroup var selection: FeedbackCommand.Selection

        func run() async throws {
            let (choice, app) = (try selection.choice(), try scope.parsed())
            let count = try await withDatabase {
                try await QuarantineStore($0).decide(.release, about: choice, app: app, now: Date())
            }
            print("released \(count) registrations: feedback has them deactivated where they were not taken again")
        }
    }

    struct Discard: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Does not believe the evidence: the registrations stay as they are.")
        @OptionGroup var scope: FeedbackCommand.Scope
        @OptionGroup var selection: FeedbackCommand.Selection

        func run() async throws {
            let (choice, app) = (try selection.choice(), try scope.parsed())
            let count = try await withDatabase {
                try await QuarantineStore($0).decide(.discard, about: choice, app: app, now: Date())
            }
            print("discarded what was held against \(count) registrations")
        }
    }
}
