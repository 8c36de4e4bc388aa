import ArgumentParser
import DecisionLog
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
        let app = try app.map { try AppID(named: $0) }
        let question = ExplanationStore.Question(event: event, app: app, user: user)
        let isKnown = try await withDatabase { database in
            let store = ExplanationStore(database)
            let explanations = try await store.explain(question)
            for explanation in explanations { try await Self.tell(explanation, question, store) }
            return !explanations.isEmpty
        }
        guard isKnown else {
            throw Refusal(
                "no event “\(event)” was decided about: it did not arrive, was dropped (unknown type, expired), or is dead-lettered"
            )
        }
    }

    /// Prints it page by page, so that an event to a hundred thousand takes no more memory than one to two hundred.
    private static func tell(
        _ explanation: Explanation, _ question: ExplanationStore.Question, _ store: ExplanationStore
    ) async throws {
        for line in [explanation.heading] + explanation.underWay { print(line) }
        var page: Explanation? = explanation
        var reasons: Set<String> = []
        while let told = page {
            for line in told.told { print(line) }
            reasons.formUnion(told.reasons)
            guard told.next != nil else { break }
            var further = question
            further.after = told.next
            page = try await store.explain(further).first
        }
        for line in Explanation.legend(of: reasons) { print(line) }
    }
}
