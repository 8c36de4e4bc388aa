package import Logging
package import PushProtocol
internal import FoundationEssentials
internal import Messaging
internal import Metrics
internal import Synchronization

/// The revoked pushes of a provider: pushes to a device of a former user, and pushes of revoked notifications.
///
/// Each sender process reads the stream of recent revocations at its start (``StreamName/senderRevocations``).
package final class Revocations: Sendable {
    private let provider: Provider
    private let logger: Logger
    private let sets: Mutex<RevokedSets>
    private let completeness = Mutex(Completeness())
    /// Counts the revocations, so that a caller repeats its lookup only after a change.
    private let changes = Atomic(0)
    private let size: Gauge
    private let notificationCount: Gauge
    private let unreadable: Counter

    private struct Completeness {
        /// ``completeSince(now:)`` without gaps; `nil` before the first push.
        var since: Timestamp?
        /// Revocations from before this time may be missing.
        var gapUntil: Timestamp?
        /// The same for a gap after which no revocation was read yet.
        var gapBefore: Timestamp?
    }

    /// Two sets, so that revoked notifications never displace lost devices.
    private struct RevokedSets {
        var devices: RevocationSet
        var notifications: RevocationSet

        func isRevoked(_ target: Push.Target, of campaign: UUID?) -> Bool {
            devices.isRevoked(target.device, registeredAt: target.registeredAt)
                || notifications.isRevoked(target.notification, registeredAt: Revocations.always)
                || campaign.map { notifications.isRevoked($0, registeredAt: Revocations.always) } ?? false
        }
    }

    /// - Parameter capacity: the most devices, and four times the most notifications. A million devices take 16 MB.
    package init(provider: Provider, capacity: Int = 1_000_000, logger: Logger) {
        self.provider = provider
        self.logger = logger
        sets = Mutex(
            RevokedSets(
                devices: RevocationSet(capacity: capacity),
                notifications: RevocationSet(capacity: max(capacity / 4, 2))))
        size = Gauge(label: "heliograph_revocations_held", dimensions: [("provider", provider.rawValue)])
        notificationCount = Gauge(
            label: "heliograph_revoked_notifications_held", dimensions: [("provider", provider.rawValue)])
        unreadable = Counter(
            label: "heliograph_revocations_unreadable_total", dimensions: [("provider", provider.rawValue)])
    }

    /// Adds messages of the stream. Ignores events of other providers' devices, and events that revoke nothing.
    package func add(_ bodies: [[UInt8]]) {
        var devices: [(id: UUID, until: Timestamp, at: Timestamp)] = []
        var notifications: [(id: UUID, at: Timestamp)] = []
        var first: Timestamp?
        for body in bodies {
            do throws(WireError) {
                switch try SenderRevocation(wireBody: body) {
                case .device(let event):
                    first = first ?? event.at
                    guard let until = event.revokes, let device = event.device, device.provider == provider else {
                        continue
                    }
                    devices.append((device.id, until, event.at))
                case .notifications(let revocation):
                    first = first ?? revocation.at
                    for id in revocation.notifications { notifications.append((id, revocation.at)) }
                }
            } catch {
                unreadable.increment()
                logger.error(
                    "Revocation cannot be decoded; its pushes are sent. Deploy a build that knows its version",
                    metadata: ["error": "\(error)"])
            }
        }
        if let first { endGap(at: first) }
        guard !devices.isEmpty || !notifications.isEmpty else { return }
        let counts = sets.withLock { sets in
            for (id, until, at) in devices { sets.devices.revoke(id, until: until, at: at) }
            for (id, at) in notifications { sets.notifications.revoke(id, until: Self.always, at: at) }
            return (sets.devices.count, sets.notifications.count)
        }
        // After the sets, so that a reader of the new count finds the devices.
        changes.add(1, ordering: .releasing)
        size.record(counts.0)
        notificationCount.record(counts.1)
    }

    /// Changes with each revocation; 0 without any.
    var generation: Int { changes.load(ordering: .acquiring) }

    /// Whether a request's push was revoked since its lookup at `generation`. Counts no metric.
    func isRevoked(_ request: TargetRequest, since generation: Int) -> Bool {
        guard self.generation != generation else { return false }
        return sets.withLock { $0.isRevoked(request.target, of: request.campaign) }
    }

    /// The outcome's reason for a push from before ``completeSince(now:)``.
    static let tooOldReason = "older-than-revocations"

    /// The moment of every revoked notification, so that a repeat changes nothing.
    private static let always = Timestamp(milliseconds: 0)

    /// Subtracted from the stream's retention. Larger than clock differences.
    static let margin = Duration.seconds(3600)

    /// The time since which all revocations are known. An older push may be for a former user of the device.
    ///
    /// The stream is read before the first push. So this is ``StreamName/retention`` before the first call, or later if
    /// the stream had a gap or the set dropped devices. `now` is the time of day.
    func completeSince(now: Timestamp) -> Timestamp {
        let since = completeness.withLock { known in
            let since = known.since ?? now - StreamName.senderRevocations.retention + Self.margin
            known.since = since
            return max(since, known.gapUntil ?? since, known.gapBefore ?? since)
        }
        guard generation > 0 else { return since }
        return sets.withLock { max(since, $0.devices.droppedUntil ?? since) }
    }

    /// Records that the stream lacks revocations from before the next one: the broker dropped them, or the stream was
    /// declared again. ``completeSince(now:)`` is then after the next revocation, and not later than `now`.
    package func noteGap(now: Timestamp = .now) {
        completeness.withLock { $0.gapBefore = now }
    }

    private func endGap(at moment: Timestamp) {
        let end = completeness.withLock { known -> Timestamp? in
            guard let before = known.gapBefore else { return nil }
            let end = min(moment + Self.margin, before)
            known.gapUntil = max(known.gapUntil ?? end, end)
            known.gapBefore = nil
            // The broker always drops messages of more than a week.
            return end > before - StreamName.senderRevocations.retention + Self.margin ? end : nil
        }
        guard let end else { return }
        logger.warning(
            "Revocation stream lacks messages; older pushes are not sent",
            metadata: ["before": "\(RFC3339.string(from: end.date))"])
    }

    /// Logs a push from before ``completeSince(now:)``, which is not sent.
    func logTooOld(_ delivery: Delivery<Push>) {
        logger.warning(
            "Push is older than the known revocations; not sent. Publish its event again",
            metadata: delivery.logMetadata.merging([
                "app": "\(delivery.message.app)", "targets": "\(delivery.message.targets.count)",
            ]) { $1 })
    }

    /// The indices of revoked `targets`, ascending: the device has a new user, or the notification or its campaign is
    /// revoked.
    func revoked(
        among targets: some Sequence<(target: Push.Target, campaign: UUID?)>, of app: AppID
    ) -> [Int] {
        var indices: [Int] = []
        sets.withLock { sets in
            for (index, (target, campaign)) in targets.enumerated()
            where sets.isRevoked(target, of: campaign) {
                indices.append(index)
            }
        }
        if !indices.isEmpty {
            Counter(
                label: "heliograph_push_targets_revoked_total",
                dimensions: [("provider", provider.rawValue), ("app", app.rawValue)]
            ).increment(by: indices.count)
        }
        return indices
    }
}

extension Push.Target {
    /// Whether the target is a registration of one user, not a topic, a condition or a channel.
    var isOneDevice: Bool {
        switch address {
        case nil, .fid: true
        case .topic, .condition, .channel: false
        }
    }
}
