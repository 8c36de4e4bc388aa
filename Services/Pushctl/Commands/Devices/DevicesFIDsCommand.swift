import ArgumentParser
import PushProtocol

extension DevicesCommand {
    /// `pushctl devices fids`: the versions of apps whose FIDs are not used.
    struct FIDs: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "fids", abstract: "List the app versions whose FIDs are not used, or end such a halt.",
            discussion: """
                Needs DATABASE_URL, as a member of heliograph_token_registry or as the owner. The registry halts a version when
                FCM refuses its FIDs while it takes the registration tokens beside them. A halt ends by itself after a day.
                """)
        @Option(help: "The app to end a halt of.") var app: String?
        @Option(help: "The version to end the halt of.") var end: String?
        @Flag(help: "End the halt of registrations that have no version.") var endWithoutVersion = false

        func run() async throws {
            guard end != nil || endWithoutVersion else {
                let halts = try await withDatabase { try await FIDHaltStore($0).list() }
                if halts.isEmpty { print("no version's FIDs are halted") }
                for halt in halts { print(halt.line) }
                return
            }
            guard let app else { throw Refusal("which app's? Add --app") }
            guard end == nil || !endWithoutVersion else {
                throw Refusal("either --end or --end-without-version, not both")
            }
            let (id, version) = (try AppID(named: app), end ?? "")
            let isEnded = try await withDatabase { try await FIDHaltStore($0).end(app: id, version: version) }
            guard isEnded else { throw Refusal("that version is not halted; pushctl devices fids lists the halts") }
            print("ended; FIDs of that version are tried again within seconds")
        }
    }
}
