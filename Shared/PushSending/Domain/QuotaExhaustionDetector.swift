import FoundationEssentials

/// Distinguishes an exhausted project quota from devices over their own rate limit. Pure.
///
/// FCM answers both with `QUOTA_EXCEEDED` (Firebase: FCM error codes). Few throttled devices among many are over their
/// own limit. Several in a row without another answer mean that the project's quota is exhausted.
struct QuotaExhaustionDetector: Sendable {
    /// The throttled devices in a row that mean an exhausted quota.
    static let threshold = 3

    private var throttled: Set<UUID> = []

    /// Records the answers to targets that were sent together.
    ///
    /// - Parameter answered: the number of targets with another answer.
    /// - Returns: Whether the project's quota is exhausted.
    mutating func record(throttled devices: Set<UUID>, answered: Int) -> Bool {
        guard !devices.isEmpty || answered > 0 else { return false }
        // A quota that runs out within a push leaves its first targets answered.
        if answered > 0 { throttled = devices.count > answered ? devices : [] } else { throttled.formUnion(devices) }
        guard throttled.count >= Self.threshold else { return false }
        throttled = []
        return true
    }
}
