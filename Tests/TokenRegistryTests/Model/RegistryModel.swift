import Foundation
import PushProtocol

@testable import RegistryStore

/// A minimal sequential model of the registry for one app. Times are always given.
struct RegistryModel {
    struct Row: Hashable {
        var device: UUID
        var user: UserID
        var provider: Provider
        var environment: ProviderEnvironment
        var token: DeviceToken?
        var kind: RegistrationKind
        var installation: InstallationID?
        var scope: String?
        var registeredAt: Timestamp
        var state = RegistrationState.active
        var endedAt: Timestamp?
        var successor: UUID?
        var staleSince: Timestamp?
        /// Set for a fallback of a FID.
        var fallbackUntil: Timestamp?
    }

    struct Announced: Hashable {
        var device: UUID
        var user: UserID
        var change: DeviceEvent.Change
    }

    let app: AppID
    let cap: Int
    /// The current time. It is fixed; time passes by moving all stored times into the past.
    let now: Timestamp
    private(set) var rows: [UUID: Row] = [:]
    /// When the end of each ended row was reported.
    private var endReportedAt: [UUID: Timestamp] = [:]
    /// The time of each user's erasure, and when it was reported.
    private var erasures: [UserID: (at: Timestamp, reportedAt: Timestamp)] = [:]
    /// The last change of each membership.
    var words: [Membership: Word] = [:]
    private(set) var announced: [Announced] = []
    /// The registration time up to which pushes to a device are revoked.
    private(set) var revoked: [UUID: Timestamp] = [:]

    init(app: AppID, cap: Int, now: Timestamp) {
        self.app = app
        self.cap = cap
        self.now = now
    }

    func devices(of user: UserID) -> Set<UUID> {
        Set(active.filter { $0.user == user }.map(\.device))
    }

    /// The targets of pushes made now.
    var addressed: [RegistryPropertyTests.Addressed] {
        active.map { .init(app: app, device: $0.device, user: $0.user, registeredAt: $0.registeredAt) }
    }

    var active: [Row] { rows.values.filter { $0.state == .active } }

    // MARK: - Operations

    /// Registers requests of one user, with distinct tokens, on at most one installation.
    ///
    /// - Returns: the stored registrations.
    mutating func take(_ claims: [RegistrationRequest]) -> Set<UUID> {
        var taken: Set<UUID> = []
        var isNewToUser = false
        for claim in claims {
            guard let at = claim.at, isAfterErasure(at, of: claim.user) else { continue }
            let device = current(claim.device)
            let new = Row(
                device: device, user: claim.user, provider: claim.provider,
                environment: device == claim.device ? claim.environment : claim.environment.other, token: claim.token,
                kind: claim.kind, installation: claim.installation, scope: claim.scope, registeredAt: at)
            let old = rows[device]
            if let old, !accepts(old, new) { continue }
            put(new)
            taken.insert(device)
            if old?.state != .active || old?.user != claim.user { isNewToUser = true }
        }
        if !taken.isEmpty, let installation = claims[0].installation { settle(installation) }
        if isNewToUser { evict(claims[0].user) }
        return taken
    }

    /// - Returns: the user's registrations there, and whether there were none before.
    mutating func replace(
        _ installation: InstallationID, of user: UserID, with claims: [RegistrationRequest]
    ) -> (devices: Set<UUID>, isNew: Bool) {
        let isNew = devices(of: user, on: installation).isEmpty
        let taken = take(claims)
        vacate(installation, user, except: taken.union(fallbacks(on: installation, of: user, beside: taken)), .dropped)
        return (devices(of: user, on: installation), isNew)
    }

    mutating func leave(_ installation: InstallationID, _ user: UserID) {
        vacate(installation, user, except: [], .left)
    }

    private mutating func vacate(
        _ installation: InstallationID, _ user: UserID, except kept: Set<UUID>, _ departure: Departure
    ) {
        // Fallbacks leave first, in their own right, before their FID takes them along.
        let theirs = rows.values.filter { $0.user == user && $0.installation == installation }
        for var row in theirs.filter({ $0.fallbackUntil != nil }) + theirs.filter({ $0.fallbackUntil == nil }) {
            guard !kept.contains(row.device) else { continue }
            row.endedAt = now
            switch (row.state, departure) {
            case (.active, _), (.evicted, .left), (.stale, .left):
                row.state = .signedOut
                put(row, departure)
            case (.signedOut, _), (.invalidated, _), (.replaced, _), (.evicted, .dropped), (.stale, .dropped): put(row)
            case (.erased, _): break
            }
        }
    }

    private func devices(of user: UserID, on installation: InstallationID) -> Set<UUID> {
        Set(
            active.filter { $0.user == user && $0.installation == installation && $0.fallbackUntil == nil }
                .map(\.device))
    }

    private func accepts(_ old: Row, _ new: Row) -> Bool {
        let isOwners = old.user == new.user
        if old.state == .active, old.kind == .liveActivity, !isOwners, old.installation != new.installation {
            return false
        }
        guard new.registeredAt > old.registeredAt || new.registeredAt == old.registeredAt && isOwners else {
            return false
        }
        switch old.state {
        case .active: return true
        case .invalidated, .replaced: return new.registeredAt > old.endedAt!
        case .signedOut, .evicted, .stale, .erased: return !isOwners || new.registeredAt > old.endedAt!
        }
    }

    private mutating func settle(_ installation: InstallationID) {
        let here = active.filter { $0.installation == installation }.sorted(by: isLater)
        for row in here {
            let slot = here.filter { $0.kind == row.kind && $0.scope == row.scope }
            if row.user != here[0].user {
                end(row, .signedOut, at: here[0].registeredAt)
            } else if row.device != slot[0].device {
                end(row, .replaced, at: slot[0].registeredAt)
            }
        }
    }

    private mutating func evict(_ user: UserID) {
        for row in active.filter({ $0.user == user }).sorted(by: isLater).dropFirst(cap) {
            end(row, .evicted, at: row.registeredAt)
        }
    }

    mutating func unregister(_ claim: RegistrationRequest) {
        if let at = claim.at, rows[claim.device] == nil, isAfterErasure(at, of: claim.user) {
            // Unknown device: only the sign-out is stored.
            var row = Row(
                device: claim.device, user: claim.user, provider: claim.provider, environment: claim.environment,
                token: claim.token, kind: claim.kind, registeredAt: Timestamp(milliseconds: 0))
            row.state = .signedOut
            row.endedAt = at
            put(row)
        }
        guard let at = claim.at, var row = rows[current(claim.device)], row.user == claim.user, row.registeredAt <= at
        else { return }
        switch row.state {
        case .active: end(row, .signedOut, at: at)
        case .signedOut, .evicted, .stale:
            if row.endedAt! < at { end(row, .signedOut, at: at) }
        case .invalidated, .replaced:
            row.endedAt = max(row.endedAt!, at)
            put(row)
        case .erased: break
        }
    }

    mutating func deactivate(_ device: UUID, since: Timestamp) -> Bool {
        guard let row = rows[device], row.state == .active, row.registeredAt <= since else { return false }
        end(row, .invalidated, at: since)
        return true
    }

    mutating func correct(_ device: UUID, to environment: ProviderEnvironment) -> Bool {
        guard let old = rows[device], old.state == .active, old.provider == .apns, old.environment != environment else {
            return false
        }
        var new = old
        new.environment = environment
        new.device = DerivedID.device(app: app, provider: .apns, environment: environment, token: old.token!)
        end(old, .replaced, at: old.registeredAt, successor: new.device)
        let other = rows[new.device]
        let isLater = other.map {
            $0.registeredAt <= old.registeredAt && ($0.state == .active || $0.endedAt! <= old.registeredAt)
        }
        if isLater ?? true { put(new) }
        return true
    }

    mutating func erase(_ user: UserID, at moment: Timestamp) -> Int {
        let moment = max(moment, erasures[user]?.at ?? moment)
        erasures[user] = (at: moment, reportedAt: now)
        words = words.filter { $0.user != user || $1.at > moment }
        let theirs = rows.values.filter { $0.user == user && $0.state != .erased && $0.registeredAt <= moment }
        for row in theirs {
            var row = row
            row.token = nil
            row.installation = nil
            row.scope = nil
            row.staleSince = nil
            row.successor = nil
            row.fallbackUntil = nil
            end(row, .erased, at: moment)
        }
        return theirs.count
    }

    /// - Returns: the deleted registrations.
    mutating func sweep() -> Set<UUID> {
        fadeFallbacks()
        for row in active where now - row.registeredAt > .seconds(30 * 86_400) {
            var row = row
            let isForgotten =
                row.provider == .fcm && row.kind != .fcmWeb && now - row.registeredAt > .seconds(270 * 86_400)
            row.staleSince = row.staleSince ?? now
            if isForgotten { end(row, .stale, at: row.registeredAt) } else { put(row) }
        }
        return forget()
    }

    /// Deletes old ended rows with their revocations: no push is in transit for so long.
    private mutating func forget() -> Set<UUID> {
        var forgotten: Set<UUID> = []
        while let row = rows.values.first(where: isOver) {
            rows[row.device] = nil
            revoked[row.device] = nil
            forgotten.insert(row.device)
        }
        let remembered = Set(rows.values.filter { $0.state == .erased }.map(\.user))
        erasures = erasures.filter { remembered.contains($0) || now - $1.reportedAt <= .seconds(30 * 86_400) }
        return forgotten
    }

    private func isOver(_ row: Row) -> Bool {
        guard row.state != .active, let endedAt = row.endedAt, let reportedAt = endReportedAt[row.device] else {
            return false
        }
        if row.state == .erased { return now - reportedAt > .seconds(30 * 86_400) }
        // Redirects requests for the wrong environment while its successor is stored.
        let isNeeded = row.successor.map { rows[$0] != nil } ?? false
        return !isNeeded && now - max(endedAt, reportedAt) > .seconds(90 * 86_400)
    }

    /// Moves all stored times into the past.
    mutating func pass(_ time: Duration) {
        rows = rows.mapValues { row in
            var row = row
            row.registeredAt = row.registeredAt - time
            row.endedAt = row.endedAt.map { $0 - time }
            row.staleSince = row.staleSince.map { $0 - time }
            row.fallbackUntil = row.fallbackUntil.map { $0 - time }
            return row
        }
        endReportedAt = endReportedAt.mapValues { $0 - time }
        erasures = erasures.mapValues { (at: $0.at - time, reportedAt: $0.reportedAt - time) }
        revoked = revoked.mapValues { $0 - time }
        words = words.mapValues { Word(joins: $0.joins, at: $0.at - time) }
    }

    // MARK: - Helpers

    func isAfterErasure(_ moment: Timestamp, of user: UserID) -> Bool {
        erasures[user].map { moment > $0.at } ?? true
    }

    /// The registration that a request for a corrected environment applies to.
    private func current(_ device: UUID) -> UUID {
        guard let row = rows[device], row.state == .replaced else { return device }
        return row.successor ?? device
    }

    private func isLater(_ a: Row, _ b: Row) -> Bool {
        a.registeredAt != b.registeredAt
            ? a.registeredAt > b.registeredAt : a.device.uuidString < b.device.uuidString
    }

    mutating func end(_ row: Row, _ state: RegistrationState, at moment: Timestamp, successor: UUID? = nil) {
        var row = row
        row.state = state
        row.endedAt = moment
        if let successor { row.successor = successor }
        put(row)
    }

    /// The kind of a sign-out.
    enum Departure {
        /// Its user has lost the device.
        case left
        /// The installation dropped the registration, but keeps its user.
        case dropped
    }

    mutating func put(_ new: Row, _ departure: Departure = .left) {
        let old = rows[new.device]
        var new = new
        if let old, new.state == .active, old.state != .active || old.user != new.user {
            // A new owner or a revival has a later millisecond.
            new.registeredAt = max(new.registeredAt, old.registeredAt + .milliseconds(1))
        }
        rows[new.device] = new
        defer { if let old { endFallbacks(of: old, as: new) } }
        // A second report of an end changes its time, not when it was first reported.
        if old?.state ?? .active == .active || new.state == .erased { endReportedAt[new.device] = now }
        func tell(_ change: DeviceEvent.Change, _ user: UserID) {
            announced.append(Announced(device: new.device, user: user, change: change))
        }
        if let old, old.user != new.user, old.state != .signedOut, old.state != .erased {
            tell(.replaced, old.user)
            leave(old)
        }
        if new.state == .active {
            let isSame =
                old.map {
                    $0.state == .active && $0.user == new.user && $0.kind == new.kind
                        && $0.installation == new.installation && $0.scope == new.scope
                } ?? false
            if isSame, let old, old.staleSince == nil, new.staleSince != nil { return tell(.stale, new.user) }
            if !isSame || old?.staleSince != new.staleSince { tell(.registered, new.user) }
        } else if old?.state != new.state, new.state == .erased {
            tell(.erased, new.user)
            revoke(new)
        } else if let old, isLeft(old, new) {
            tell(.signedOut, new.user)
            switch departure {
            case .left: leave(old)
            case .dropped: revoke(old)
            }
        } else if old?.state == .active {
            switch new.state {
            case .signedOut: break
            case .invalidated: tell(.deactivated, new.user)
            case .replaced: tell(new.successor == nil ? .replaced : .corrected, new.user)
            case .evicted: tell(.evicted, new.user)
            case .stale: tell(.stale, new.user)
            case .active, .erased: break
            }
        }
    }

    /// Whether the user signed out, also of a registration that had ended otherwise.
    private func isLeft(_ old: Row, _ new: Row) -> Bool {
        guard old.user == new.user, old.state != .signedOut, old.state != .erased else { return false }
        return new.state == .signedOut
    }

    /// Revokes the device, and registrations of the user that ended otherwise within a week, on the same installation
    /// or moved to this device.
    private mutating func leave(_ row: Row) {
        revoke(row)
        for other in rows.values where other.user == row.user && other.device != row.device {
            let isThere = other.successor == row.device || row.installation.map { $0 == other.installation } ?? false
            guard let reportedAt = endReportedAt[other.device], now - reportedAt < .seconds(7 * 86_400) else {
                continue
            }
            switch other.state {
            case .replaced, .invalidated, .evicted, .stale: if isThere { revoke(other) }
            case .active, .signedOut, .erased: break
            }
        }
    }

    private mutating func revoke(_ row: Row) {
        revoked[row.device] = max(revoked[row.device] ?? row.registeredAt, row.registeredAt)
    }
}

extension ProviderEnvironment {
    var other: ProviderEnvironment { self == .production ? .development : .production }
}
