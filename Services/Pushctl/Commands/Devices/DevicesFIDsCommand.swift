import ArgumentParser
import Primitives
import PushProtocol
import RegistryStore

extension DevicesCommand {
    /// `pushctl devices fids`: app versions whose FIDs are not used.
    struct FIDs: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "fids", abstract: "List the app versions whose FIDs are halted, or end a halt.",
            discussion: """
                Needs DATABASE_URL of a member of heliograph_token_registry or of the owner. The registry halts an app version
                when FCM refuses its FIDs but accepts the registration tokens of the same devices. A halt expires after a day.
                """)
        @Option(help: "The app whose halt to end.") var app: String?
        @Option(help: "The version whose halt to end.") var end: String?
        @Flag(help: "End the halt of registrations without a version.") var endWithoutVersion = false
        @OptionGroup var output: OutputOption

        func run() async throws {
            guard end != nil || endWithoutVersion else {
                let halts = try await withDatabase { try await FIDStore($0).currentHalts() }
                return try output.write(
                    ["halts": .array(halts.map(\.json))],
                    text: FIDStore.HaltSummary.table(halts).lines(orNone: "no halts"))
            }
            guard let app else { throw CommandError("--app is missing", .usage) }
            guard end == nil || !endWithoutVersion else {
                throw CommandError("either --end or --end-without-version, not both", .usage)
            }
            let (id, version) = (try AppID(named: app), end ?? "")
            let isEnded = try await withDatabase { try await FIDStore($0).endHalt(of: id, version: version) }
            guard isEnded else {
                throw CommandError("that version is not halted; pushctl devices fids lists the halts", .notFound)
            }
            try output.write(
                ["app": .string(id.rawValue), "version": .string(version), "ended": true],
                text: ["ended; the senders use FIDs of that version again within seconds"])
        }
    }
}

extension FIDStore.HaltSummary {
    static func table(_ halts: [FIDStore.HaltSummary]) -> TextTable {
        var table = TextTable([.left("app"), .left("version"), .right("users"), .left("since"), .left("until")])
        for halt in halts {
            table.add([
                halt.app, halt.version.isEmpty ? "no version" : halt.version, "\(halt.suspected)",
                RFC3339.string(from: halt.haltedAt), RFC3339.string(from: halt.until),
            ])
        }
        return table
    }

    var json: JSONValue {
        [
            "app": .string(app), "version": .string(version), "users": .number(suspected),
            "halted_at": .time(haltedAt), "until": .time(until),
        ]
    }
}
