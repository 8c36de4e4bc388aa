import FoundationEssentials

/// Tells a project that is over its quota from a device that is over its own: the provider's answer is the same
/// (`push-protocols` B.7). A pure machine.
///
/// When some of many are refused, it is about them. When nobody is taken any more, it is about all.
struct QuotaRefusals: Sendable {
    /// As many devices, refused with nobody taken between them, are no coincidence.
    static let threshold = 3

    private var refused: Set<UUID> = []

    /// Takes note of what came of targets that were sent together: the devices that were refused for their rate, and how
    /// many targets the provider answered otherwise.
    ///
    /// - Returns: whether the quota is the project's.
    mutating func note(refused devices: Set<UUID>, answered: Int) -> Bool {
        guard !devices.isEmpty || answered > 0 else { return false }
        // A quota that ends in the middle of a push leaves its first targets answered.
        if answered > 0 { refused = devices.count > answered ? devices : [] } else { refused.formUnion(devices) }
        guard refused.count >= Self.threshold else { return false }
        refused = []
        return true
    }
}
