/// The times after which unseen devices are stale (`Shared/Providers/ProviderFacts.md`, B.8 Stale tokens).
enum InactivityRule {
    /// Unseen time after which a registration is flagged. Pushes are still sent to it.
    static let flagAfter = Duration.seconds(30 * 86_400)
    /// Unseen time after which FCM rejects an Android token, so its registration ends. APNs, web and iOS tokens have no
    /// such limit.
    static let endAfter = Duration.seconds(270 * 86_400)
    /// How long an erasure is kept, to reject late registrations from before it.
    static let forgetAfter = Duration.seconds(30 * 86_400)
}
