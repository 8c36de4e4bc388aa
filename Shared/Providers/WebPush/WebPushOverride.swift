package import PushProtocol

/// Overrides for the Web Push request: its urgency, and members of the message.
package struct WebPushOverride: Hashable, Sendable {
    /// The value of the header `urgency` (RFC 8030 §5.3): whether a phone on battery wakes for the message.
    package enum Urgency: String, Hashable, Sendable, CaseIterable {
        case veryLow = "very-low"
        case low
        case normal
        case high
    }

    package var urgency: Urgency?
    /// Merged into the rendered JSON, such as `{"notification": {"actions": […], "icon": "…"}, "mutable": true}`. A
    /// `null` removes a member of the top level or of `notification`.
    package var message: JSONValue?

    package init(urgency: Urgency? = nil, message: JSONValue? = nil) {
        self.urgency = urgency
        self.message = message
    }
}
