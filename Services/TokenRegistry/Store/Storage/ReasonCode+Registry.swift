package import Messaging

extension ReasonCode {
    /// A message in the campaign queue is no cursor.
    package static let cursorUnreadable = "cursor-unreadable"
    /// A campaign step fails permanently, for example because its stored notification cannot be decoded.
    package static let campaignStepFailed = "campaign-step-failed"
    /// The statements of a step time out repeatedly.
    package static let campaignStepTimeout = "campaign-step-timeout"
    /// A stored row has a value that cannot be decoded.
    static let rowUnreadable = "row-unreadable"
    /// No running process knows the row's kind.
    static let rowKindUnknown = "row-kind-unknown"
    /// A statement fails because of a row.
    static let rowFailed = "row-failed"
    /// The broker permanently refuses a row's message.
    package static let rowUnpublishable = "row-unpublishable"
}
