internal import PushProtocol

/// What is really done with a message: its disposition, after the attempts were counted. Indirect, since most have
/// nothing to say, and are handed about.
indirect enum Conclusion: Hashable, Sendable {
    case done
    case retry(RetryLevel, Reason)
    case postpone(RetryLevel, Reason)
    case deadLetter(Reason)
    case discard(Reason)

    init(_ disposition: Disposition, attempt: Int, maximumAttempts: Int) {
        switch disposition {
        case .done: self = .done
        case .discard(let reason): self = .discard(reason)
        case .deadLetter(let reason): self = .deadLetter(reason)
        case .postpone(let delay, let reason): self = .postpone(RetryLevel(atLeast: delay), reason)
        case .retry(let delay, let reason):
            self =
                attempt < maximumAttempts
                ? .retry(RetryLevel(atLeast: delay), reason)
                : .deadLetter(
                    Reason(
                        code: ReasonCode.attemptsExhausted,
                        detail: "given up after \(attempt) attempts; the last: \(reason.code): \(reason.detail)"))
        }
    }

    /// For a message whose handler threw while it was alone: the levels in order, then the dead letter.
    init(failure: String, attempt: Int, maximumAttempts: Int) {
        let reason = Reason(code: ReasonCode.handlerFailed, detail: failure)
        let levels = RetryLevel.allCases
        self =
            attempt < maximumAttempts
            ? .retry(levels[min(max(attempt, 1), levels.count) - 1], reason) : .deadLetter(reason)
    }

    var isDone: Bool { if case .done = self { true } else { false } }

    var label: String {
        switch self {
        case .done: "done"
        case .retry: "retry"
        case .postpone: "postpone"
        case .deadLetter: "dead-letter"
        case .discard: "discard"
        }
    }

    var reason: Reason? {
        switch self {
        case .done: nil
        case .retry(_, let reason), .postpone(_, let reason), .deadLetter(let reason), .discard(let reason): reason
        }
    }
}

/// The reasons that the runtime itself gives. What cannot be decoded has its `WireError`'s code.
package enum ReasonCode {
    package static let attemptsExhausted = "attempts-exhausted"
    package static let handlerFailed = "handler-failed"
    package static let outboundRefused = "outbound-refused"
    /// No queue takes what the message led to: it is tried again later, however often it was.
    package static let outboundUnroutable = "outbound-unroutable"
    /// The copy for a retry level or the dead-letter queue cannot be published with the headers that the message came with.
    package static let copyRefused = "copy-refused"
    /// A copy without those headers cannot be published either. The broker moves the message to the dead-letter queue and
    /// notes this reason.
    package static let rejected = "rejected"
    /// The message was returned often before its handling began. It waits in a retry level.
    package static let setAside = "set-aside"
}

extension Reason {
    static let setAside = Reason(
        code: ReasonCode.setAside, detail: "returned often without being begun; its returns are counted anew")
}
