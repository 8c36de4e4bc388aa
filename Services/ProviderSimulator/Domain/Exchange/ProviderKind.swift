/// The provider endpoint that a request addressed.
enum ProviderKind: String, Hashable, Sendable, CaseIterable {
    case apns
    case fcm
    /// The push service of browsers.
    case webpush
    /// Google's token endpoint.
    case oauth
}
