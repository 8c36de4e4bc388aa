import ArgumentParser
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

        func run() async throws {
            guard end != nil || endWithoutVersion else {
                let halts = try await withDatabase { try await FIDStore($0).currentHalts() }
                if halts.isEmpty { print("no halts") }
                for halt in halts { print(halt.line) }
                return
            }
            guard let app else { throw CommandError("--app is missing") }
            guard end == nil || !endWithoutVersion else {
                throw CommandError("either --end or --end-without-version, not both")
            }
            let (id, version) = (try AppID(named: app), end ?? "")
            let isEnded = try await withDatabase { try await FIDStore($0).endHalt(of: id, version: version) }
            guard isEnded else {
                throw CommandError("that version is not halted; pushctl devices fids lists the halts")
            }
            print("ended; the senders use FIDs of that version again within seconds")
        }
    }
}

extension FIDStore.HaltSummary {
    /// `family-portal  5.0  12 people  since …  until …`
    var line: String {
        let words = [app, version.isEmpty ? "no version" : version, "\(suspected) people"]
        let times = ["since \(RFC3339.string(from: haltedAt))", "until \(RFC3339.string(from: until))"]
        return (words + times).joined(separator: "  ")
    }
}
