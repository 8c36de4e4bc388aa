/// How a lane proves to APNs who it is (`push-protocols` A.2, A.8).
package enum APNsAuthentication: Hashable, Sendable {
    /// By a provider token in each request.
    case token
    /// By a certificate in the TLS handshake. `topics` are those it was issued for; `nil` where it does not say.
    case certificate(topics: Set<String>?)

    /// Why a push of this type to this topic can only be refused; `nil` for what may be sent.
    func objection(to type: APNsPushType, topic: String) -> String? {
        switch self {
        case .token: nil
        case .certificate where !type.allowsCertificate: "\(type.rawValue)-needs-a-provider-token"
        case .certificate(let topics): topics?.contains(topic) == false ? "topic-not-in-certificate" : nil
        }
    }
}
