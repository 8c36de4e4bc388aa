import FoundationEssentials
import PushProtocol

/// Up to which moment of their registration pushes to devices are revoked. Pure.
///
/// Holds the last so many devices, between half its capacity and all of it: two tables, of which the older is forgotten
/// when the younger is full. A device is 54 bits of its id, so two of them fall together once in 10¹⁰ lookups of a full
/// set, and that costs a push only where the moments agree, too. Twelve bytes a place; memory grows with use.
struct RevocationSet {
    private let share: Int
    private var young = Table()
    private var old = Table()
    /// How many devices of the older table are in the younger one, too.
    private var renewed = 0
    /// The time of the last revocation that was forgotten for want of room; `nil` while none was.
    private(set) var forgottenUntil: Timestamp?

    init(capacity: Int) {
        precondition(capacity >= 2)
        share = capacity / 2
    }

    var count: Int { young.count + old.count - renewed }
    var isEmpty: Bool { young.count == 0 && old.count == 0 }
    /// What the places take.
    var bytes: Int { young.bytes + old.bytes }

    /// Notes that pushes to `device` from a registration of up to `moment` are revoked. The latest moment counts. A repeat
    /// takes no place and displaces no other device.
    ///
    /// - Parameter at: when the user lost the device.
    mutating func revoke(_ device: UUID, until moment: Timestamp, at: Timestamp) {
        let key = Self.key(of: device)
        let (recent, earlier) = (young.moment(of: key), old.moment(of: key))
        let latest = Self.clamp(moment)
        if let known = recent ?? earlier, latest <= known { return }
        if recent == nil {
            if earlier != nil { renewed += 1 }
            if young.count == share {
                if renewed < old.count, let lost = old.lastAt { forgottenUntil = max(forgottenUntil ?? lost, lost) }
                old = young
                young = Table()
                renewed = 0
            }
        }
        young.set(key, latest, most: share)
        young.lastAt = max(young.lastAt ?? at, at)
    }

    /// Whether a push to `device` from a registration of `moment` is revoked.
    func isRevoked(_ device: UUID, registeredAt moment: Timestamp) -> Bool {
        let key = Self.key(of: device)
        guard let limit = young.moment(of: key) ?? old.moment(of: key) else { return false }
        return Self.clamp(moment) <= limit
    }

    private static func clamp(_ moment: Timestamp) -> UInt64 {
        UInt64(min(max(moment.milliseconds, 0), Int64(1) << Table.momentBits - 1))
    }

    /// Ids are digests, but for those of tests, which count: every bit decides. Never 0.
    private static func key(of device: UUID) -> UInt64 {
        let (high, low) = withUnsafeBytes(of: device.uuid) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        var mixed = high &* 0x9e37_79b9_7f4a_7c15 ^ low
        mixed = (mixed ^ mixed >> 32) &* 0xff51_afd7_ed55_8ccd
        mixed = (mixed ^ mixed >> 32) &* 0xc4ce_b9fe_1a85_ec53
        return max((mixed ^ mixed >> 32) >> (64 - Table.keyBits), 1)
    }
}

/// Keys and moments in open addressing, at most three quarters full.
private struct Table {
    /// Until the year 2109, in milliseconds.
    static let momentBits = 42
    static let keyBits = 96 - momentBits

    /// The key and the high bits of the moment; 0 is a free place.
    private var words: [UInt64] = []
    /// The low bits of the moment.
    private var tails: [UInt32] = []
    private(set) var count = 0
    /// The time of the latest revocation in it.
    var lastAt: Timestamp?

    var bytes: Int { words.count * (MemoryLayout<UInt64>.stride + MemoryLayout<UInt32>.stride) }

    func moment(of key: UInt64) -> UInt64? {
        guard count > 0 else { return nil }
        let place = place(of: key)
        return words[place] == 0 ? nil : moment(at: place)
    }

    /// - Parameter most: how many keys there will ever be.
    mutating func set(_ key: UInt64, _ moment: UInt64, most: Int) {
        if (count + 1) * 4 > words.count * 3 { grow(most: most) }
        let place = place(of: key)
        if words[place] == 0 { count += 1 }
        words[place] = key << UInt64(Self.momentBits - 32) | moment >> 32
        tails[place] = UInt32(truncatingIfNeeded: moment)
    }

    private func moment(at place: Int) -> UInt64 {
        (words[place] & (1 << UInt64(Self.momentBits - 32) - 1)) << 32 | UInt64(tails[place])
    }

    private func key(at place: Int) -> UInt64 { words[place] >> UInt64(Self.momentBits - 32) }

    /// Where the key is, or else belongs.
    private func place(of key: UInt64) -> Int {
        // As far along the table as the key is along all keys.
        var place = Int((key << UInt64(64 - Self.keyBits)).multipliedFullWidth(by: UInt64(words.count)).high)
        while words[place] != 0, self.key(at: place) != key {
            place += 1
            if place == words.count { place = 0 }
        }
        return place
    }

    private mutating func grow(most: Int) {
        let size = max(words.count + 1, min(max(words.count * 2, 64), most * 4 / 3 + 2))
        let before = self
        self = Table()
        lastAt = before.lastAt
        words = Array(repeating: 0, count: size)
        tails = Array(repeating: 0, count: size)
        for place in before.words.indices where before.words[place] != 0 {
            set(before.key(at: place), before.moment(at: place), most: most)
        }
    }
}
