/// Why a message is retried, discarded or dead-lettered.
package struct Reason: Hashable, Sendable {
    /// A stable word such as `quota-exceeded`: a metric label and a header, so never made from message content.
    package var code: String
    /// One sentence for a person. No device tokens, keys or message content.
    package var detail: String

    package init(code: String, detail: String) {
        self.code = code
        self.detail = detail
    }
}

/// What shall become of one message. A handler returns it; only the runtime settles. Indirect, since most have nothing
/// to say, and are handed about.
package indirect enum Disposition: Hashable, Sendable {
    /// Everything about this message is done: it is acknowledged.
    case done
    /// Not now: it is republished to the shortest retry level that waits at least `after`, with its attempt counted.
    /// After the last attempt the policy allows, it is dead-lettered as `attempts-exhausted` instead.
    case retry(after: Duration, Reason)
    /// Not now, and it was not tried: as `retry`, but no attempt is counted, so it is never exhausted by waiting.
    case postpone(after: Duration, Reason)
    /// Given up on, and kept for a person: republished to the dead-letter queue of the queue it came from.
    case deadLetter(Reason)
    /// Rightly of no consequence (expired, duplicate, nobody asked): counted by reason and acknowledged.
    case discard(Reason)
}

extension Disposition {
    /// The metric label.
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
