/// The handling of a push whose result is unknown: the connection broke, or the sender crashed, after the request was
/// sent and before the response. No provider offers exactly-once delivery (ProviderFacts.md §0).
package enum DeliveryPolicy: String, Codable, Hashable, Sendable, CaseIterable {
    /// Sent again with the same ids. The device shows it once where the platform replaces by id.
    case atLeastOnce = "at-least-once"
    /// Not sent again. The outcome is ``Outcome/Answer/unknown(reason:)``.
    case atMostOnce = "at-most-once"
}
