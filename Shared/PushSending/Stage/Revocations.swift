internal import FoundationEssentials
package import Logging
internal import Metrics
package import PushProtocol
internal import Synchronization

/// What pushes to a provider are to be sent no more, since their user has lost the device: as the registry's events tell,
/// of which every sender process reads those of the last days before it begins (``StreamName/senderRevocations``).
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_revocations_held` | gauge | provider | devices that are known to have been lost by somebody |
/// | `heliograph_revocations_unreadable_total` | counter | provider | events that this build cannot read |
/// | `heliograph_push_targets_revoked_total` | counter | provider, app | targets that were not sent for it |
package final class Revocations: Sendable {
    private let provider: Provider
    private let logger: Logger
    private let held: Mutex<RevocationSet>
    private let hasAny = Atomic(false)
    private let size: Gauge
    private let unreadable: Counter

    /// - Parameter capacity: counts devices; a million take 16 MB.
    package init(provider: Provider, capacity: Int = 1_000_000, logger: Logger) {
        self.provider = provider
        self.logger = logger
        held = Mutex(RevocationSet(capacity: capacity))
        size = Gauge(label: "heliograph_revocations_held", dimensions: [("provider", provider.rawValue)])
        unreadable = Counter(
            label: "heliograph_revocations_unreadable_total", dimensions: [("provider", provider.rawValue)])
    }

    /// Takes in device events, as they came. What another provider's senders are to know, and what revokes nothing, is
    /// passed over.
    package func note(_ bodies: [[UInt8]]) {
        var revoked: [(device: UUID, until: Timestamp)] = []
        for body in bodies {
            do throws(WireError) {
                let event = try DeviceEvent.decode(wireBody: body)
                guard let until = event.revokes, let device = event.device, device.provider == provider else {
                    continue
                }
                revoked.append((device.id, until))
            } catch {
                unreadable.increment()
                logger.error("a device event cannot be read; what it revokes is sent", metadata: ["error": "\(error)"])
            }
        }
        guard !revoked.isEmpty else { return }
        let count = held.withLock { held in
            for (device, until) in revoked { held.revoke(device, until: until) }
            return held.count
        }
        hasAny.store(true, ordering: .releasing)
        size.record(count)
    }

    var isEmpty: Bool { !hasAny.load(ordering: .acquiring) }

    /// The places of those `targets` that are meant for somebody who has lost the device, ascending.
    func revoked(among targets: some Sequence<Push.Target>, of app: AppID) -> [Int] {
        var places: [Int] = []
        held.withLock { held in
            for (place, target) in targets.enumerated()
            where held.isRevoked(target.device, registeredAt: target.registeredAt) {
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
