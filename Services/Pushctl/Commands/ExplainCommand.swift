import ArgumentParser
import DecisionLog
import PushProtocol

/// `pushctl explain EVENT`: the decision about each user.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain an event: which users got a push, which did not and why, and the providers' responses.")

    @Argument(help: "The event's id.") var event: String
    @Option(help: "Only the event of this app.") var app: String?
    @Option(help: "Only this user.") var user: String?

    func run() async throws {
        let app = try app.map { try AppID(named: $0) }
        let question = ExplanationStore.ExplanationQuery(event: event, app: app, user: user)
        let isKnown = try await withDatabase { database in
            let store = ExplanationStore(database)
            let explanations = try await store.explain(question)
            for explanation in explanations { try await Self.printExplanation(explanation, question, store) }
            return !explanations.isEmpty
        }
        guard isKnown else {
            throw CommandError(
                "no decision about the event “\(event)”: it did not arrive, was dropped (unknown type, expired), or is dead-lettered"
            )
        }
    }

    /// Prints page by page, so that memory does not grow with the number of users.
    private static func printExplanation(
        _ explanation: Explanation, _ question: ExplanationStore.ExplanationQuery, _ store: ExplanationStore
    ) async throws {
        for line in [explanation.heading] + explanation.fanOutLines { print(line) }
        var page: Explanation? = explanation
        var reasons: Set<String> = []
        while let told = page {
            for line in told.notificationLines { print(line) }
            reasons.formUnion(told.reasons)
            guard told.next != nil else { break }
            var further = question
            further.after = told.next
            page = try await store.explain(further).first
        }
        for line in Explanation.legend(of: reasons) { print(line) }
    }
}
