internal import FoundationEssentials
package import Logging
internal import Metrics
package import PushProtocol
internal import Synchronization

/// Revoked pushes of a provider: those to a device that its user has lost, and those of revoked notifications. Every sender
/// process reads the revocations of the last days before it begins (``StreamName/senderRevocations``).
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_revocations_held` | gauge | provider | devices that are known to have been lost by somebody |
/// | `heliograph_revoked_notifications_held` | gauge | provider | notifications that are known to be revoked |
/// | `heliograph_revocations_unreadable_total` | counter | provider | events that this build cannot read |
/// | `heliograph_push_targets_revoked_total` | counter | provider, app | targets that were not sent for it |
package final class Revocations: Sendable {
    private let provider: Provider
    private let logger: Logger
    private let held: Mutex<Held>
    private let known = Mutex(Known())
    /// Counts the events that revoked something. A reader that has looked a target up need not look again before it moves.
    private let changes = Atomic(0)
    private let size: Gauge
    private let notificationCount: Gauge
    private let unreadable: Counter

    private struct Known {
        /// A week before the first push, by ``reach(now:)``; `nil` before it.
        var since: Timestamp?
        /// Revocations from before this moment may be missing.
        var gapUntil: Timestamp?
        /// The same of a gap that no revocation was read after.
        var gapBefore: Timestamp?
    }

    /// Two sets, so that revoked notifications never displace lost devices.
    private struct Held {
        var devices: RevocationSet
        var notifications: RevocationSet

        func isRevoked(_ target: Push.Target) -> Bool {
            devices.isRevoked(target.device, registeredAt: target.registeredAt)
                || notifications.isRevoked(target.notification, registeredAt: Revocations.always)
        }
    }

    /// - Parameter capacity: counts devices, and a quarter of it notifications; a million devices take 16 MB.
    package init(provider: Provider, capacity: Int = 1_000_000, logger: Logger) {
        self.provider = provider
        self.logger = logger
        held = Mutex(
            Held(
                devices: RevocationSet(capacity: capacity),
                notifications: RevocationSet(capacity: max(capacity / 4, 2))))
        size = Gauge(label: "heliograph_revocations_held", dimensions: [("provider", provider.rawValue)])
        notificationCount = Gauge(
            label: "heliograph_revoked_notifications_held", dimensions: [("provider", provider.rawValue)])
        unreadable = Counter(
            label: "heliograph_revocations_unreadable_total", dimensions: [("provider", provider.rawValue)])
    }

    /// Notes the messages of the stream. Events of other providers' devices, and events that revoke nothing, change nothing.
    package func note(_ bodies: [[UInt8]]) {
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
                    "A revocation cannot be read; the pushes that it names are sent", metadata: ["error": "\(error)"])
            }
        }
        if let first { endGap(at: first) }
        guard !devices.isEmpty || !notifications.isEmpty else { return }
        let counts = held.withLock { held in
            for (id, until, at) in devices { held.devices.revoke(id, until: until, at: at) }
            for (id, at) in notifications { held.notifications.revoke(id, until: Self.always, at: at) }
            return (held.devices.count, held.notifications.count)
        }
        // After the set: a reader that sees the new count finds the devices.
        changes.add(1, ordering: .releasing)
        size.record(counts.0)
        notificationCount.record(counts.1)
    }

    /// Moves whenever something is revoked; 0 before anything is.
    var generation: Int { changes.load(ordering: .acquiring) }

    /// Whether a target that was looked up at `generation`, or later, is revoked by now. Counts nothing.
    func isRevoked(_ target: Push.Target, since generation: Int) -> Bool {
        guard self.generation != generation else { return false }
        return held.withLock { $0.isRevoked(target) }
    }

    /// The word in the outcome of a target that is older than ``reach(now:)``.
    static let forgotten = "older-than-revocations"

    /// The moment of every revoked notification, so that a repeat changes nothing.
    private static let always = Timestamp(milliseconds: 0)

    /// How much later than the stream's first message the reach begins: more than clocks differ.
    static let margin = Duration.seconds(3600)

    /// From when on every revocation is known. A push that was published earlier may be for a user who lost the
    /// device, unknown to this process.
    ///
    /// The stream was read from ``StreamName/memory`` before the first push came. So the reach is that long before the
    /// first call of this method, or later where the stream had a gap or the set had to forget devices. `now` is the time of
    /// day.
    func reach(now: Timestamp) -> Timestamp {
        let since = known.withLock { known in
            let since = known.since ?? now - StreamName.senderRevocations.memory + Self.margin
            known.since = since
            return max(since, known.gapUntil ?? since, known.gapBefore ?? since)
        }
        guard generation > 0 else { return since }
        return held.withLock { max(since, $0.devices.forgottenUntil ?? since) }
    }

    /// Notes that the stream no longer has all revocations from before the next one: its broker dropped them, or it was
    /// declared anew. The reach begins after the next revocation, and not later than `now`.
    package func noteGap(now: Timestamp = .now) {
        known.withLock { $0.gapBefore = now }
    }

    private func endGap(at moment: Timestamp) {
        let end = known.withLock { known -> Timestamp? in
            guard let before = known.gapBefore else { return nil }
            let end = min(moment + Self.margin, before)
            known.gapUntil = max(known.gapUntil ?? end, end)
            known.gapBefore = nil
            // The broker drops messages of more than a week all the time.
            return end > before - StreamName.senderRevocations.memory + Self.margin ? end : nil
        }
        guard let end else { return }
        logger.warning(
            "The stream of revocations lacks messages; pushes that were published before are not sent",
            metadata: ["before": "\(RFC3339.string(from: end.date))"])
    }

    /// Logs a push that is not sent, because it is older than the reach.
    func reportForgotten(_ push: Push) {
        logger.warning(
            "push is older than the known revocations; not sent. Let its sender publish it anew",
            metadata: [
                "app": "\(push.app)", "push": "\(push.trace.id)", "targets": "\(push.targets.count)",
            ])
    }

    /// The places of the `targets` whose user has lost the device or whose notification is revoked, ascending.
    func revoked(among targets: some Sequence<Push.Target>, of app: AppID) -> [Int] {
        var places: [Int] = []
        held.withLock { held in
            for (place, target) in targets.enumerated()
            where held.isRevoked(target) {
                places.append(place)
            }
        }
        if !places.isEmpty {
            Counter(
                label: "heliograph_push_targets_revoked_total",
                dimensions: [("provider", provider.rawValue), ("app", app.rawValue)]
            ).increment(by: places.count)
        }
        return places
    }
}

extension Push.Target {
    /// Whether it is one registration, which a user can lose. A topic, a condition or a channel has no owner.
    var isOneDevice: Bool {
        switch address {
        case nil, .fid: true
        case .topic, .condition, .channel: false
        }
    }
}
