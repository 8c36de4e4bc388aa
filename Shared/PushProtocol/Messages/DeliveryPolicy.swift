/// What becomes of a push when nobody can know whether the provider took it: the connection broke, or the sender died,
/// after the request had left and before it was answered. Exactly once is on offer nowhere (`push-protocols` §0).
package enum DeliveryPolicy: String, Codable, Hashable, Sendable, CaseIterable {
    /// It is sent again under the same ids, which a phone shows once where the platform replaces by them.
    case atLeastOnce = "at-least-once"
    /// It is not sent again, and its outcome is ``Outcome/Answer/unknown(reason:)``.
    case atMostOnce = "at-most-once"
}
