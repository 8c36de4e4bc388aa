/// The workers of rules that run beside its stages and its API: each looks again and again for rows or files that are due.
/// The service's list of workers is made of these cases, and so is the test that one bad row stops none of them. The raw
/// value is the name of the type.
enum Worker: String, CaseIterable, Sendable {
    case ruleReloader = "RuleReloader"
    case sweeper = "Sweeper"
    case statsRollup = "StatsRollup"
    case deliveryReportWorker = "DeliveryReportWorker"
    case scheduledSendWorker = "ScheduledSendWorker"
    case fanOutWorker = "FanOutWorker"
    case digestWorker = "DigestWorker"
    case badgeCorrector = "BadgeCorrector"
    case pushRevoker = "PushRevoker"
    case inboxFeed = "InboxFeed"
}
