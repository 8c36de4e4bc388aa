import PushProtocol

/// FCM's quotas: of a project, and of each device (push-protocols B.5).
struct FCMQuota: Sendable {
    let allowances: Allowances

    /// Uses up one message of the project, and of the device if there is one; throws the refusal when one has none left.
    func spend(project: String, token: String?, at now: Timestamp) throws(FCMQuotaRefusal) {
        let spent = allowances.spend(\.fcmProjectPerMinute, per: .seconds(60), on: "project \(project)", at: now)
        if let wait = spent {
            throw FCMQuotaRefusal(detail: "the project's messages of this minute are used up", wait: wait)
        }
        guard let token else { return }
        if let wait = allowances.spend(\.fcmDevicePerMinute, per: .seconds(60), on: "minute \(token)", at: now) {
            throw FCMQuotaRefusal(detail: "the device's messages of this minute are used up", wait: wait)
        }
        if let wait = allowances.spend(\.fcmDevicePerHour, per: .seconds(3600), on: "hour \(token)", at: now) {
            throw FCMQuotaRefusal(detail: "the device's messages of this hour are used up", wait: wait)
        }
    }

    /// A refusal with any 4xx but 429 counts as a message.
    func spendRefusal(_ status: Int, project: String?, at now: Timestamp) {
        guard (400..<500).contains(status), status != 429, let project else { return }
        _ = allowances.spend(\.fcmProjectPerMinute, per: .seconds(60), on: "project \(project)", at: now)
    }

    /// The 429 in FCM's words.
    func answer(_ refusal: FCMQuotaRefusal) -> ScriptedAnswer {
        // Rounded up: who comes back at that second is let in.
        let seconds = refusal.wait.components.seconds + (refusal.wait.components.attoseconds > 0 ? 1 : 0)
        return ScriptedAnswer(fcm: .quotaExceeded).with {
            switch allowances.limits.fcmRetryAfter {
            case .none: $0.retryAfter = nil
            case .seconds: $0.retryAfter = .text("\(seconds)")
            case .date: $0.retryAfter = .date(in: seconds)
            }
        }
    }
}

/// Why a message is over a quota, and until when.
struct FCMQuotaRefusal: Error, Hashable, Sendable {
    let detail: String
    let wait: Duration
}
