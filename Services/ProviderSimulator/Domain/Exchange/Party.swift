/// Whom a request was for.
enum Party: String, Hashable, Sendable, CaseIterable {
    case apns
    case fcm
    /// Google's token endpoint.
    case oauth
}
