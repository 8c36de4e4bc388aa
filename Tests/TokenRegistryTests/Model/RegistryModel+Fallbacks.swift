import FoundationEssentials
import PushProtocol

@testable import RegistryStore

/// Registration tokens as fallbacks of a FID.
extension RegistryModel {
    /// Keeps registration tokens beside a FID of the installation for 30 days.
    mutating func fallbacks(
        on installation: InstallationID, of user: UserID, beside taken: Set<UUID>
    ) -> Set<UUID> {
        let here = active.filter { $0.user == user && $0.installation == installation }
        guard here.contains(where: { $0.kind == .fid && taken.contains($0.device) }) else { return [] }
        var kept: Set<UUID> = []
        for var row in here where row.kind == .fcmToken && !taken.contains(row.device) {
            if let until = row.fallbackUntil, until <= now { continue }
            row.fallbackUntil = row.fallbackUntil ?? now + .seconds(30 * 86_400)
            put(row)
            kept.insert(row.device)
        }
        return kept
    }

    /// Ends fallbacks with their FID.
    mutating func endFallbacks(of old: Row, as new: Row) {
        guard old.kind == .fid, let installation = old.installation else { return }
        let isLost =
            new.user != old.user || new.installation != old.installation
            || new.state == .signedOut && old.state != .signedOut
            || new.state == .invalidated && old.state == .invalidated && new.endedAt != old.endedAt
        guard isLost, new.state != .erased else { return }
        let here = active.filter { $0.user == old.user && $0.installation == installation }
        guard !here.contains(where: { $0.kind == .fid && $0.device != old.device }) else { return }
        for row in here where row.fallbackUntil != nil { end(row, .signedOut, at: new.endedAt ?? new.registeredAt) }
    }

    /// Ends expired fallbacks whose installation has a FID.
    mutating func fadeFallbacks() {
        for row in active {
            guard let until = row.fallbackUntil, until < now else { continue }
            let beside = active.contains {
                $0.kind == .fid && $0.user == row.user && $0.installation == row.installation
            }
            if beside { end(row, .replaced, at: until) }
        }
    }
}
