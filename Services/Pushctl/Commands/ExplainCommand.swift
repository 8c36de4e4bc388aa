import ArgumentParser
import DecisionLog
import Primitives
import PushProtocol

/// `pushctl explain EVENT`: the decision about each user.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain an event: which users got a push, which did not and why, and the providers' responses.")

    @Argument(help: "The event's id.") var event: String
    @Option(help: "Only the event of this app.") var app: String?
    @Option(help: "Only this user.") var user: String?
    @OptionGroup var output: OutputOption

    func run() async throws {
        let app = try app.map { try AppID(named: $0) }
        let question = ExplanationStore.ExplanationQuery(event: event, app: app, user: user)
        let json = output.json
        let isKnown = try await withDatabase { database in
            let store = ExplanationStore(database)
            let explanations = try await RevocationLog(database).adding(to: store.explain(question))
            guard !explanations.isEmpty else { return false }
            if json {
                try await Self.writeJSON(explanations, question, store)
            } else {
                for explanation in explanations { try await Self.printExplanation(explanation, question, store) }
            }
            return true
        }
        guard isKnown else {
            throw CommandError(
                "no decision about the event “\(event)”: it did not arrive, was dropped (unknown type, expired), or is dead-lettered",
                .notFound)
        }
    }

    /// Prints page by page, so that memory does not grow with the number of users.
    private static func printExplanation(
        _ explanation: Explanation, _ question: ExplanationStore.ExplanationQuery, _ store: ExplanationStore
    ) async throws {
        for line in [explanation.heading] + explanation.fanOutLines + explanation.revocationLines
            + explanation.clearLines
        {
            print(TextTable.printable(line))
        }
        var reasons: Set<String> = []
        try await forEachPage(explanation, question, store) { page in
            var lines = page.notificationLines
            if let user = question.user, page.traces.isEmpty, page.fanOuts.isEmpty {
                lines = ["  no notification to “\(user)”: no rule addresses this user"]
            }
            for line in lines { print(TextTable.printable(line)) }
            reasons.formUnion(page.reasons)
        }
        for line in Explanation.legend(of: reasons) { print(line) }
    }

    /// Writes the JSON of the operator API, with all pages of each event in one list.
    private static func writeJSON(
        _ explanations: [Explanation], _ question: ExplanationStore.ExplanationQuery, _ store: ExplanationStore
    ) async throws {
        var reasons: Set<String> = []
        try OutputOption.write(text: #"{"events":["#)
        for (index, explanation) in explanations.enumerated() {
            var heading = explanation.json.object ?? [:]
            (heading["stories"], heading["next"]) = (nil, nil)
            let members = try WireCoding.text(JSONValue.object(heading))
            try OutputOption.write(text: "\(index > 0 ? "," : "")\(members.dropLast()),\"stories\":[")
            var isFirst = true
            try await forEachPage(explanation, question, store) { page in
                let stories = page.json["stories"] ?? []
                let text = try WireCoding.text(stories).dropFirst().dropLast()
                if !text.isEmpty { try OutputOption.write(text: "\(isFirst ? "" : ",")\(text)") }
                isFirst = isFirst && text.isEmpty
                reasons.formUnion(page.reasons)
            }
            try OutputOption.write(text: "]}")
        }
        let meanings = try WireCoding.text(Explanation.meanings(of: reasons))
        try OutputOption.write(text: #"],"reasons":\#(meanings)}"# + "\n")
    }

    private static func forEachPage(
        _ first: Explanation, _ question: ExplanationStore.ExplanationQuery, _ store: ExplanationStore,
        _ take: (Explanation) throws -> Void
    ) async throws {
        var page: Explanation? = first
        while let current = page {
            try take(current)
            guard current.next != nil else { return }
            var further = question
            further.after = current.next
            page = try await store.explain(further).first
        }
    }
}
