extension WorkQueue {
    /// The stage that consumes the queue.
    package var stage: BusRole {
        switch self {
        case .rulesEvents, .rulesAppEvents, .rulesOutcomes, .rulesErasures, .rulesCensus, .rulesChannels: .rules
        case .registryNotifications, .registryAppNotifications, .registryDevices, .registryAppDevices,
            .registryCampaigns:
            .tokenRegistry
        case .senderPushes(.apns, _, _), .apnsSenderChannels: .apnsSender
        case .senderPushes(.fcm, _, _): .fcmSender
        case .senderPushes(.webpush, _, _): .webPushSender
        case .feedbackOutcomes, .feedbackErasures: .feedback
        case .webhookReports: .webhookSender
        }
    }

    /// How urgent the messages of the queue are.
    package var urgency: QueueUrgency {
        switch self {
        case .registryNotifications(let lane), .registryAppNotifications(let lane, _), .senderPushes(_, let lane, _):
            lane == .interactive ? .interactive : .bulk
        case .rulesEvents, .rulesAppEvents: .interactive
        case .registryDevices, .registryAppDevices, .registryCampaigns, .rulesOutcomes, .rulesErasures, .rulesCensus,
            .rulesChannels, .apnsSenderChannels, .feedbackOutcomes, .feedbackErasures, .webhookReports:
            .background
        }
    }

    /// A regular expression of the names of the work queues of `stage`, for any apps, without webhooks; with `urgency`, only of those.
    /// `nil` if there are none. It has both anchors.
    package static func pattern(of stage: BusRole, urgency: QueueUrgency? = nil) -> String? {
        // A name that is no part of another queue's name.
        guard let placeholder = AppID(rawValue: "each-app") else { return nil }
        let names = all(apps: [placeholder])
            .filter { $0.stage == stage && (urgency == nil || $0.urgency == urgency) }
            .map { $0.name.replacing(".", with: #"\."#).replacing(placeholder.rawValue, with: BusRole.app) }
        return names.isEmpty ? nil : "^(\(names.joined(separator: "|")))$"
    }
}

/// How soon the messages of a work queue have to be consumed.
package enum QueueUrgency: Hashable, Sendable, CaseIterable {
    /// Events, and everything that interactive pushes wait for.
    case interactive
    /// Bulk notifications and pushes.
    case bulk
    /// Outcomes, device commands, campaigns and reports: no push waits for them.
    case background
}
