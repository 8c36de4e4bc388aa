import Messaging

extension ReasonCode {
    /// A message in the queue of campaigns is no cursor.
    static let cursorUnreadable = "cursor-unreadable"
    /// A step of a campaign can never be made, as when its stored notification cannot be read.
    static let campaignStepFailed = "campaign-step-failed"
    /// The statements of a step time out again and again.
    static let campaignStepTimeout = "campaign-step-timeout"
    /// A stored row holds a value that cannot be read.
    static let rowUnreadable = "row-unreadable"
    /// A row is of a kind that no running process knows.
    static let rowKindUnknown = "row-kind-unknown"
    /// A statement fails over a row.
    static let rowFailed = "row-failed"
    /// The broker can never take the message that a row leads to.
    static let rowUnpublishable = "row-unpublishable"
}
