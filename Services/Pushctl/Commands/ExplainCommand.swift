import ArgumentParser
import PushProtocol

/// `pushctl explain EVENT`: why each user was pushed, or not.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Tells for an event who was pushed, who was not, why, and what the providers said.")

    @Argument(help: "The event's id, as its upstream gave it.") var event: String
    @Option(help: "Only this app's event.") var app: String?
    @Option(help: "Only this user's story.") var user: String?

    func run() async throws {
        let app = try app.map { name in
            guard let id = AppID(rawValue: name) else { throw Refusal("“\(name)” is not an app's id") }
            return id
        }
        let explanations = try await withDatabase { [event, user] database in
            try await ExplanationStore(database).explain(event: event, app: app, user: user)
        }
        guard !explanations.isEmpty else {
            throw Refusal(
                "no event “\(event)” was decided about: it did not arrive, was dropped (unknown app or type, expired), or is dead-lettered"
            )
        }
        for line in explanations.flatMap(\.lines) { print(line) }
    }
}
