/// Why a message is retried, discarded or dead-lettered.
package struct Reason: Hashable, Sendable {
    /// A stable word such as `quota-exceeded`. Used as a metric label and a header, so never derived from message
    /// content.
    package var code: String
    /// One sentence for operators, without device tokens, keys or message content.
    package var detail: String

    package init(code: String, detail: String) {
        self.code = code
        self.detail = detail
    }
}

/// The handler's decision about one message; the runtime executes it. Indirect, because most cases have no payload and
/// values are copied often.
package indirect enum Disposition: Hashable, Sendable {
    /// Acknowledge: the message is fully handled.
    case done
    /// Republish to the shortest retry level of at least `after`, as the next attempt. After the policy's last attempt
    /// the message is dead-lettered as `attempts-exhausted`.
    case retry(after: Duration, Reason)
    /// Like `retry`, but without counting an attempt: the message was not tried.
    case postpone(after: Duration, Reason)
    /// Republish to the dead-letter queue of its queue.
    case deadLetter(Reason)
    /// Acknowledge without effect (expired, duplicate, no recipient), and count the reason.
    case discard(Reason)
}

extension Disposition {
    /// The attribute `heliograph.disposition` of a span.
    package var label: String {
        switch self {
        case .done: "done"
        case .retry: "retry"
        case .postpone: "postpone"
        case .deadLetter: "dead-letter"
        case .discard: "discard"
        }
    }
}
