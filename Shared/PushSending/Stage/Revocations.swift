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
    /// From when on this process knows of every revocation; `nil` before it has sent anything.
    private let knownSince = Mutex<Timestamp?>(nil)
    /// Counts the events that revoked something. A reader that has looked a target up need not look again before it moves.
    private let changes = Atomic(0)
    private let size: Gauge
    private let notificationCount: Gauge
    private let unreadable: Counter

    /// Two sets, so that revoked notifications never displace lost devices.
    private struct Held {
        var devices: RevocationSet
        var notifications: RevocationSet

        func isRevoked(_ target: Push.Target) -> Bool {
            devices.isRevoked(target.device, registeredAt: target.registeredAt)
                || notifications.isRevoked(target.notification, registeredAt: Timestamp(milliseconds: 0))
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
        for body in bodies {
            do throws(WireError) {
                switch try SenderRevocation(wireBody: body) {
                case .device(let event):
                    guard let until = event.revokes, let device = event.device, device.provider == provider else {
                        continue
                    }
                    devices.append((device.id, until, event.at))
                case .notifications(let revocation):
                    for id in revocation.notifications { notifications.append((id, revocation.at)) }
                }
            } catch {
                unreadable.increment()
                logger.error(
                    "A revocation cannot be read; the pushes that it names are sent", metadata: ["error": "\(error)"])
            }
        }
        guard !devices.isEmpty || !notifications.isEmpty else { return }
        let counts = held.withLock { held in
            for (id, until, at) in devices { held.devices.revoke(id, until: until, at: at) }
            for (id, at) in notifications { held.notifications.revoke(id, until: at, at: at) }
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

    /// How much later than the stream's first message the reach begins: more than clocks differ.
    static let margin = Duration.seconds(3600)

    /// From when on every revocation is known. A push that was published earlier may be for a user who lost the
    /// device, unknown to this process.
    ///
    /// The stream was read from ``StreamName/memory`` before the first push came. So the reach is that long before the
    /// first call of this method, or later where the set had to forget devices. `now` is the time of day.
    func reach(now: Timestamp) -> Timestamp {
        let since = knownSince.withLock { since in
            let known = since ?? now - StreamName.senderRevocations.memory + Self.margin
            since = known
            return known
        }
        guard generation > 0 else { return since }
        return held.withLock { max(since, $0.devices.forgottenUntil ?? since) }
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
