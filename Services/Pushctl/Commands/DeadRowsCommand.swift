import ArgumentParser
import Foundation
import PushProtocol

/// `pushctl dead-rows …`: rows of the database that a service could not work on.
struct DeadRowsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead-rows", abstract: "Rows of the database that a service passes over, and trying them again.",
        discussion: """
            A service marks a row that it cannot read or work on, and goes on with the others. Rows are named by table, app
            and key; their content is never shown.
            """,
        subcommands: [List.self, Retry.self, Drop.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List dead rows, the latest of each table first.")
        @OptionGroup var selection: Selection
        @Option(help: "The most rows of each table to print.") var limit = 100

        func run() async throws {
            let choice = try selection.choice()
            let limit = max(1, limit)
            let (entries, counts) = try await withDatabase { database in
                let store = DeadRowStore(database)
                return (try await store.list(choice, limit: limit), try await store.count(choice))
            }
            for line in Self.lines(entries, counts) { print(line) }
        }

        /// One line for each row, and one for each table that has more than were listed.
        static func lines(_ entries: [DeadRowStore.Entry], _ counts: [(table: String, count: Int)]) -> [String] {
            guard !entries.isEmpty else { return ["there are no dead rows"] }
            let rows = entries.map { entry in
                [RFC3339.seconds(from: entry.deadAt), entry.table, entry.app ?? "-", entry.reason, entry.key]
                    .joined(separator: "  ")
            }
            let more = counts.compactMap { table, count -> String? in
                let shown = entries.filter { $0.table == table }.count
                return count > shown ? "\(count - shown) more in \(table); raise --limit" : nil
            }
            return rows + more
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let the services work on dead rows again.",
            discussion: "Fix the cause first. A row that fails again is dead again.")
        @OptionGroup var selection: Selection
        @Flag(help: "Confirm that every dead row is meant.") var all = false

        func run() async throws {
            let choice = try selection.choice(all: all)
            print("retried: \(try await withDatabase { try await DeadRowStore($0).decide(.retry, about: choice) })")
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove dead rows permanently. Without --yes, only count them.",
            discussion: """
                A row of rules.held, inbox, report, badge, digest or member is deleted. A crowd ends where it stands. A person has the
                usual settings again.
                """)
        @OptionGroup var selection: Selection
        @Flag(help: "Confirm that every dead row is meant.") var all = false
        @Flag(help: "Confirm.") var yes = false

        func run() async throws {
            let choice = try selection.choice(all: all)
            let yes = yes
            let count = try await withDatabase { database in
                let store = DeadRowStore(database)
                if yes { return try await store.decide(.drop, about: choice) }
                return try await store.count(choice).reduce(0) { $0 + $1.count }
            }
            print(yes ? "dropped: \(count)" : "\(count) would be dropped; confirm with --yes")
        }
    }

    /// The dead rows that a command is about.
    struct Selection: ParsableArguments {
        @Option(help: "Only rows of this table, such as rules.held.") var table: String?
        @Option(help: "Only rows of this app.") var app: String?
        @Option(help: "Only rows that are dead for this reason, such as unreadable.") var reason: String?
        @Option(help: "Only the row with this key, as `list` prints it.") var key: String?

        func choice() throws -> DeadRowStore.Choice {
            DeadRowStore.Choice(table: try table.map(Self.table), app: app, reason: reason, key: key)
        }

        /// The same for commands that change rows: nothing is meant by accident.
        func choice(all: Bool) throws -> DeadRowStore.Choice { try Self.checked(choice(), all: all) }

        static func table(_ name: String) throws -> DeadRowTable {
            guard let table = DeadRowTable.all.first(where: { $0.name == name }) else {
                let names = DeadRowTable.all.map(\.name).joined(separator: ", ")
                throw Refusal("“\(name)” is no table with dead rows; the tables are \(names)")
            }
            return table
        }

        static func checked(_ choice: DeadRowStore.Choice, all: Bool) throws -> DeadRowStore.Choice {
            switch (choice == DeadRowStore.Choice(), all) {
            case (true, false): throw Refusal("name a table, an app, a reason or a key, or confirm with --all")
            case (false, true): throw Refusal("either narrow the rows or give --all, not both")
            case (true, true), (false, false): return choice
            }
        }
    }
}
