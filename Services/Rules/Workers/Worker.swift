/// The workers of rules, which run beside its stages and its API. Each polls for due rows or changed files.
///
/// The service runs every case, and a test checks for every case that one bad row does not stop it. The raw value is
/// the name of the type.
enum Worker: String, CaseIterable, Sendable {
    case ruleReloader = "RuleReloader"
    case sweeper = "Sweeper"
    case statsRollup = "StatsRollup"
    case variantGuard = "VariantGuard"
    case deliveryReportWorker = "DeliveryReportWorker"
    case scheduledSendWorker = "ScheduledSendWorker"
    case fanOutWorker = "FanOutWorker"
    case digestWorker = "DigestWorker"
    case badgeCorrector = "BadgeCorrector"
    case pushRevoker = "PushRevoker"
    case notificationRevoker = "NotificationRevoker"
    case shownCopyClearer = "ShownCopyClearer"
    case inboxFeed = "InboxFeed"
    case channelKeeper = "ChannelKeeper"
    case censusWorker = "CensusWorker"
}
