import PushProtocol

/// Summarises the results by line number, without tokens.
struct TopicReport: Hashable, Sendable {
    let text: String
    let isComplete: Bool
    /// `{"done", "total", "not_done": [{"result", "registrations": […]}]}`; registrations by their place in the input,
    /// from 1.
    let json: JSONValue

    /// `answers` must be in the order of the lines.
    init(_ answers: [TopicSubscription.SubscriptionResult]) {
        isComplete = answers.allSatisfy { $0 == .done }
        var lines: [String: [Int]] = [:]
        for (index, answer) in answers.enumerated() where answer != .done {
            lines[Self.word(for: answer), default: []].append(index + 1)
        }
        json = [
            "done": .number(answers.count { $0 == .done }), "total": .number(answers.count),
            "not_done": .array(
                lines.sorted { $0.key < $1.key }.map { word, numbers in
                    ["result": .string(word), "registrations": .array(numbers.map { .number($0) })]
                }),
        ]
        let done = "\(answers.count { $0 == .done }) of \(answers.count) done"
        let rest = lines.sorted { $0.key < $1.key }.map { word, numbers in
            let shown = numbers.prefix(20).map(String.init).joined(separator: ", ")
            return "\(numbers.count) \(word): registration \(shown)\(numbers.count > 20 ? ", …" : "")"
        }
        text = ([done] + rest).joined(separator: "\n")
    }

    private static func word(for answer: TopicSubscription.SubscriptionResult) -> String {
        switch answer {
        case .done: "done"
        case .unregistered: "unregistered (the registration no longer exists)"
        case .refused(let reason): "refused (\(reason))"
        case .retryable(let reason): "not processed (\(reason); try again later)"
        case .misconfigured(let reason): "not allowed (\(reason); check the account's role and project)"
        }
    }
}
