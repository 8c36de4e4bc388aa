/// How a route authenticates with APNs (ProviderFacts.md §A.2, §A.8).
package enum APNsAuthentication: Hashable, Sendable {
    /// A provider token in each request.
    case token
    /// A TLS client certificate. `topics` are the certificate's topics; `nil` if it has no such extension.
    case certificate(topics: Set<String>?)

    /// The reason why APNs would reject a push of this type and topic; `nil` if it may be sent.
    func rejectionReason(to type: APNsPushType, topic: String) -> String? {
        switch self {
        case .token: nil
        case .certificate where !type.allowsCertificate: "\(type.rawValue)-needs-a-provider-token"
        case .certificate(let topics): topics?.contains(topic) == false ? "topic-not-in-certificate" : nil
        }
    }
}
