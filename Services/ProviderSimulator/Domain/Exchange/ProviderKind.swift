/// The provider endpoint that a request addressed.
enum ProviderKind: String, Hashable, Sendable, CaseIterable {
    case apns
    case fcm
    /// Google's token endpoint.
    case oauth
}
