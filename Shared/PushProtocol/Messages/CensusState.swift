/// The state of a notification in the census. Each notification has exactly one.
///
/// The raw value is stored, and is a label of metrics.
package enum CensusState: String, Hashable, Sendable, CaseIterable {
    // Settled.
    case accepted, failed, skipped, expired, unknown
    case campaign, inbox, dropped, digested, replaced, removed
    case noRecipient = "no-recipient"
    // Waiting.
    case queued, held, digest
    case fanOut = "fan-out"
    case onTheWay = "on-the-way"
    case atRegistry = "at-registry"
    case atSender = "at-sender"
    case atOutcomes = "at-outcomes"
    case retrying
    // Waiting for an operator.
    case deadLetter = "dead-letter"
    case deadRow = "dead-row"
    // Missing.
    case missingRegistry = "missing-registry"
    case missingSender = "missing-sender"
    case missingOutcomes = "missing-outcomes"
    case missingFeedback = "missing-feedback"
    case unexplained

    /// Whether the notification is lost.
    package var isGap: Bool {
        switch self {
        case .missingRegistry, .missingSender, .missingOutcomes, .missingFeedback, .unexplained: true
        case .accepted, .failed, .skipped, .expired, .unknown, .campaign, .inbox, .dropped, .digested, .replaced,
            .removed, .noRecipient, .queued, .held, .digest, .fanOut, .onTheWay, .atRegistry, .atSender, .atOutcomes,
            .retrying, .deadLetter, .deadRow:
            false
        }
    }

    /// The stage at which a notification is missing, for operators.
    package var place: String? {
        switch self {
        case .missingRegistry: "between rules and token-registry (token-registry.notifications.*)"
        case .missingSender: "between token-registry and the senders (*-sender.pushes.*)"
        case .missingOutcomes: "between the senders and rules (rules.outcomes)"
        case .missingFeedback: "between the senders and feedback (feedback.outcomes)"
        case .unexplained: "in rules: a decision or an outcome has an unknown word"
        default: nil
        }
    }
}
