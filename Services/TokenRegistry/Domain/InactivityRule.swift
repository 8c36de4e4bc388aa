/// When a device counts as gone because nothing was heard of it (`push-protocols` B.8).
enum InactivityRule {
    /// Unseen for so long, a registration is flagged; pushes go to it all the same.
    static let flagAfter = Duration.seconds(30 * 86_400)
    /// Unseen for so long, FCM has expired a token on Android and refuses it: it ends here too. APNs has no such rule,
    /// and says itself when a token is gone; the tokens of browsers and iPhones are not Android's.
    static let endAfter = Duration.seconds(270 * 86_400)
    /// For so long it is remembered who was erased, so that what they registered before and comes late is refused.
    static let forgetAfter = Duration.seconds(30 * 86_400)
}
