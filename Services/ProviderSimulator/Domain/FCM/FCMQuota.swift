import PushProtocol

/// FCM's quotas per project and per device (ProviderFacts.md §B.5).
struct FCMQuota: Sendable {
    let rateLimits: RateLimits

    /// Consumes one message of the project's and the device's quota. Returns the first one that is exhausted.
    func consume(project: String, token: String?, at now: Timestamp) -> FCMQuotaExceeded? {
        let exceeded = rateLimits.consume(\.fcmProjectPerMinute, per: .seconds(60), on: "project \(project)", at: now)
        if let wait = exceeded {
            return FCMQuotaExceeded(detail: "the project's quota for this minute is exhausted", wait: wait)
        }
        guard let token else { return nil }
        if let wait = rateLimits.consume(\.fcmDevicePerMinute, per: .seconds(60), on: "minute \(token)", at: now) {
            return FCMQuotaExceeded(detail: "the device's quota for this minute is exhausted", wait: wait)
        }
        if let wait = rateLimits.consume(\.fcmDevicePerHour, per: .seconds(3600), on: "hour \(token)", at: now) {
            return FCMQuotaExceeded(detail: "the device's quota for this hour is exhausted", wait: wait)
        }
        return nil
    }

    /// Counts a 4xx response other than 429 against the project's quota.
    func consumeRejection(_ status: Int, project: String?, at now: Timestamp) {
        guard (400..<500).contains(status), status != 429, let project else { return }
        _ = rateLimits.consume(\.fcmProjectPerMinute, per: .seconds(60), on: "project \(project)", at: now)
    }

    /// The 429 response.
    func answer(_ rejection: FCMQuotaExceeded) -> ScriptedResponse {
        // Rounded up, so that a retry after this many seconds is accepted.
        let seconds = rejection.wait.components.seconds + (rejection.wait.components.attoseconds > 0 ? 1 : 0)
        return ScriptedResponse(fcm: .quotaExceeded).with {
            switch rateLimits.limits.fcmRetryAfter {
            case .none: $0.retryAfter = nil
            case .seconds: $0.retryAfter = .text("\(seconds)")
            case .date: $0.retryAfter = .date(in: seconds)
            }
        }
    }
}

/// An exhausted quota, and the time until it refills.
struct FCMQuotaExceeded: Hashable, Sendable {
    let detail: String
    let wait: Duration
}
