/// What became of all registrations, for a person: they are told by their lines, never by their tokens.
struct TopicReport: Hashable, Sendable {
    let text: String
    /// Whether every registration is where it should be.
    let isComplete: Bool

    /// `answers` in the order of the lines.
    init(_ answers: [TopicSubscription.Answer]) {
        isComplete = answers.allSatisfy { $0 == .done }
        var lines: [String: [Int]] = [:]
        for (index, answer) in answers.enumerated() where answer != .done {
            lines[Self.word(for: answer), default: []].append(index + 1)
        }
        let done = "\(answers.count { $0 == .done }) of \(answers.count) done"
        let rest = lines.sorted { $0.key < $1.key }.map { word, numbers in
            let shown = numbers.prefix(20).map(String.init).joined(separator: ", ")
            return "\(numbers.count) \(word): registration \(shown)\(numbers.count > 20 ? ", …" : "")"
        }
        text = ([done] + rest).joined(separator: "\n")
    }

    private static func word(for answer: TopicSubscription.Answer) -> String {
        switch answer {
        case .done: "done"
        case .gone: "gone (the registration does not exist any more)"
        case .refused(let reason): "refused (\(reason))"
        case .later(let reason): "not now (\(reason); try again later)"
        case .halted(let reason): "not allowed (\(reason); check the account's role and project)"
        }
    }
}
