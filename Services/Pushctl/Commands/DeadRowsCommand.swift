import ArgumentParser
import FeedbackStore
import FoundationEssentials
import Primitives
import PushProtocol
import RegistryStore
import ServiceConnections

/// `pushctl dead-rows …`: lists, retries and drops database rows that a service could not process.
struct DeadRowsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead-rows", abstract: "List, retry or drop database rows that a service could not process.",
        discussion: """
            A service marks a row that it cannot process and continues with the others. Rows are named by table, app and
            key. Their content is never shown.
            """,
        subcommands: [List.self, Retry.self, Drop.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List dead rows, the latest of each table first.")
        @OptionGroup var selection: RowOptions
        @Option(help: "The maximum number of rows to print for each table.") var limit = 100
        @OptionGroup var output: OutputOption

        func run() async throws {
            let filter = try selection.filter()
            let limit = max(1, limit)
            let (entries, counts) = try await withDatabase { database in
                let store = DeadRowStore(database, tables: DeadRowTable.all)
                return (try await store.list(filter, limit: limit), try await store.count(filter))
            }
            try output.write(Self.json(entries, counts), text: Self.lines(entries, counts))
        }

        /// A table of the rows, and a line for each database table with unlisted rows.
        static func lines(_ entries: [DeadRowStore.DeadRow], _ counts: [(table: String, count: Int)]) -> [String] {
            var table = TextTable([.left("dead at"), .left("table"), .left("app"), .left("reason"), .left("key")])
            for entry in entries {
                table.add([RFC3339.seconds(from: entry.deadAt), entry.table, entry.app, entry.reason, entry.key])
            }
            return table.lines(orNone: "there are no dead rows")
                + unlisted(entries, counts).map { "\($0.count) more in \($0.table); raise --limit" }
        }

        static func json(_ entries: [DeadRowStore.DeadRow], _ counts: [(table: String, count: Int)]) -> JSONValue {
            [
                "rows": .array(
                    entries.map { entry in
                        [
                            "dead_at": .time(entry.deadAt), "table": .string(entry.table),
                            "app": .optional(entry.app), "reason": .string(entry.reason), "key": .string(entry.key),
                        ]
                    }),
                "unlisted": .array(
                    unlisted(entries, counts).map { ["table": .string($0.table), "count": .number($0.count)] }),
            ]
        }

        /// The number of rows beyond the limit, by table.
        private static func unlisted(
            _ entries: [DeadRowStore.DeadRow], _ counts: [(table: String, count: Int)]
        ) -> [(table: String, count: Int)] {
            counts.compactMap { table, count in
                let shown = entries.filter { $0.table == table }.count
                return count > shown ? (table, count - shown) : nil
            }
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let the services work on dead rows again.",
            discussion: "Fix the cause first. A row that fails again is dead again.")
        @OptionGroup var selection: RowOptions
        @Flag(help: "Confirm for all dead rows.") var all = false
        @OptionGroup var output: OutputOption

        func run() async throws {
            let filter = try selection.filter(all: all)
            let count = try await withDatabase {
                try await DeadRowStore($0, tables: DeadRowTable.all).apply(.retry, about: filter)
            }
            try output.write(["retried": .number(count)], text: ["retried: \(count)"])
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove dead rows permanently. Without --yes, only count them.",
            discussion: """
                Rows of rules.held, inbox, report, badge, digest and member are deleted. A row of rules.crowd (a fan-out) ends
                early. A row of rules.person is reset to the default preferences.
                """)
        @OptionGroup var selection: RowOptions
        @Flag(help: "Confirm for all dead rows.") var all = false
        @Flag(help: "Confirm.") var yes = false
        @OptionGroup var output: OutputOption

        func run() async throws {
            let filter = try selection.filter(all: all)
            let yes = yes
            let count = try await withDatabase { database in
                let store = DeadRowStore(database, tables: DeadRowTable.all)
                if yes { return try await store.apply(.drop, about: filter) }
                return try await store.count(filter).reduce(0) { $0 + $1.count }
            }
            try output.write(
                ["dropped": .number(yes ? count : 0), "selected": .number(count)],
                text: [yes ? "dropped: \(count)" : "\(count) would be dropped; confirm with --yes"])
        }
    }

    struct RowOptions: ParsableArguments {
        @Option(help: "Only rows of this table, such as rules.held.") var table: String?
        @Option(help: "Only rows of this app.") var app: String?
        @Option(help: "Only rows with this reason, such as unreadable.") var reason: String?
        @Option(help: "Only the row with this key, as `list` prints it.") var key: String?

        func filter() throws -> DeadRowStore.RowFilter {
            DeadRowStore.RowFilter(table: try table.map(Self.table), app: app, reason: reason, key: key)
        }

        /// The filter of a command that changes rows. Requires a criterion or `all`.
        func filter(all: Bool) throws -> DeadRowStore.RowFilter { try Self.checked(filter(), all: all) }

        static func table(_ name: String) throws -> String {
            let names = DeadRowTable.all.map(\.name)
            guard names.contains(name) else {
                throw CommandError(
                    "“\(name)” is not a table with dead rows; the tables are \(names.joined(separator: ", "))",
                    .notFound)
            }
            return name
        }

        static func checked(_ filter: DeadRowStore.RowFilter, all: Bool) throws -> DeadRowStore.RowFilter {
            switch (filter == DeadRowStore.RowFilter(), all) {
            case (true, false):
                throw CommandError("name a table, an app, a reason or a key, or confirm with --all", .usage)
            case (false, true): throw CommandError("either narrow the rows or give --all, not both", .usage)
            case (true, true), (false, false): return filter
            }
        }
    }
}

extension DeadRowTable {
    /// The tables of all services.
    static let all = rules + registry + feedback
}
