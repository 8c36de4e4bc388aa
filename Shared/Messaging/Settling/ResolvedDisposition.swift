internal import PushProtocol

/// A disposition after the attempt limit and the retry level were applied. Indirect, because most cases have no payload
/// and values are copied often.
indirect enum ResolvedDisposition: Hashable, Sendable {
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
                        detail: "dead-lettered after \(attempt) attempts; last reason: \(reason.code): \(reason.detail)"
                    ))
        }
    }

    /// The disposition after the handler failed on a message alone: the retry levels in order, then dead-lettered.
    init(failure: String, attempt: Int, maximumAttempts: Int) {
        let reason = Reason(code: ReasonCode.handlerFailed, detail: failure)
        self =
            attempt < maximumAttempts
            ? .retry(RetryLevel(afterAttempt: attempt), reason) : .deadLetter(reason)
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

/// The reason codes of the runtime. An undecodable message has the code of its `WireError`.
package enum ReasonCode {
    package static let attemptsExhausted = "attempts-exhausted"
    package static let handlerFailed = "handler-failed"
    package static let outboundRefused = "outbound-refused"
    /// An outbound message reached no queue. The message is retried without limit.
    package static let outboundUnroutable = "outbound-unroutable"
    /// The copy for a retry level or dead-letter queue cannot be published with the original headers.
    package static let copyRefused = "copy-refused"
    /// The copy cannot be published without these headers either. The broker dead-letters the message, with this reason
    /// in `x-death`.
    package static let rejected = "rejected"
    /// The message was returned many times before its handling started. It waits in a retry level.
    package static let setAside = "set-aside"
}

extension Reason {
    static let setAside = Reason(
        code: ReasonCode.setAside,
        detail: "returned many times before its handling started; the delivery count restarts")
}
