import PushProtocol

extension RuleDecision.Answer {
    /// The stored form.
    var word: String {
        switch self {
        case .push: "push"
        case .pushQuietly: "push-quietly"
        case .hold: "hold"
        case .digest: "digest"
        case .inbox: "inbox"
        case .drop: "drop"
        }
    }

    /// - Returns: `nil` for an unknown word.
    init?(word: String, until: Timestamp?) {
        switch (word, until) {
        case ("push", _): self = .push
        case ("push-quietly", _): self = .pushQuietly
        case ("hold", let until?): self = .hold(until: until)
        case ("digest", _): self = .digest
        case ("inbox", _): self = .inbox
        case ("drop", _): self = .drop
        default: return nil
        }
    }

    var until: Timestamp? {
        switch self {
        case .hold(let until): until
        case .push, .pushQuietly, .digest, .inbox, .drop: nil
        }
    }
}
