import FoundationEssentials
import PushProtocol

/// The latest revoked registration time of each device. Pure.
///
/// Consists of two tables and drops the older one when the younger is full, so it holds at least half its capacity.
/// Stores 54 bits of each device id, which collide once in 10¹⁰ lookups of a full set. A slot takes 12 bytes; memory
/// grows with use. For a million devices the tables take 16 MB, and two dictionaries take 64 MB (measured with jemalloc).
struct RevocationSet {
    private let halfCapacity: Int
    private var young = CompactTable()
    private var old = CompactTable()
    /// The number of devices that are in both tables.
    private var renewed = 0
    /// The time of the last revocation that was dropped for capacity; `nil` if none was.
    private(set) var droppedUntil: Timestamp?

    init(capacity: Int) {
        precondition(capacity >= 2)
        halfCapacity = capacity / 2
    }

    var count: Int { young.count + old.count - renewed }
    var isEmpty: Bool { young.count == 0 && old.count == 0 }
    /// The memory of the tables.
    var bytes: Int { young.bytes + old.bytes }

    /// Revokes pushes to `device` for registrations up to `moment`. The latest moment counts. A repeat takes no slot.
    ///
    /// - Parameter at: when the user lost the device.
    mutating func revoke(_ device: UUID, until moment: Timestamp, at: Timestamp) {
        let key = Self.key(of: device)
        let (recent, earlier) = (young.moment(of: key), old.moment(of: key))
        let latest = Self.clamp(moment)
        if let known = recent ?? earlier, latest <= known { return }
        if recent == nil {
            if earlier != nil { renewed += 1 }
            if young.count == halfCapacity {
                if renewed < old.count, let lost = old.lastAt { droppedUntil = max(droppedUntil ?? lost, lost) }
                old = young
                young = CompactTable()
                renewed = 0
            }
        }
        young.set(key, latest, maximumCount: halfCapacity)
        young.lastAt = max(young.lastAt ?? at, at)
    }

    /// Whether a push to `device`, registered at `moment`, is revoked.
    func isRevoked(_ device: UUID, registeredAt moment: Timestamp) -> Bool {
        let key = Self.key(of: device)
        guard let limit = young.moment(of: key) ?? old.moment(of: key) else { return false }
        return Self.clamp(moment) <= limit
    }

    private static func clamp(_ moment: Timestamp) -> UInt64 {
        UInt64(min(max(moment.milliseconds, 0), Int64(1) << CompactTable.momentBits - 1))
    }

    /// A hash of all bits, never 0.
    private static func key(of device: UUID) -> UInt64 {
        let (high, low) = withUnsafeBytes(of: device.uuid) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        var mixed = high &* 0x9e37_79b9_7f4a_7c15 ^ low
        mixed = (mixed ^ mixed >> 32) &* 0xff51_afd7_ed55_8ccd
        mixed = (mixed ^ mixed >> 32) &* 0xc4ce_b9fe_1a85_ec53
        return max((mixed ^ mixed >> 32) >> (64 - CompactTable.keyBits), 1)
    }
}

/// Hash table of keys and moments with open addressing, at most three quarters full.
private struct CompactTable {
    /// Until the year 2109, in milliseconds.
    static let momentBits = 42
    static let keyBits = 96 - momentBits

    /// The key and the high bits of the moment; 0 for a free slot.
    private var words: [UInt64] = []
    /// The low bits of the moment.
    private var tails: [UInt32] = []
    private(set) var count = 0
    /// The time of the latest revocation in the table.
    var lastAt: Timestamp?

    var bytes: Int { words.count * (MemoryLayout<UInt64>.stride + MemoryLayout<UInt32>.stride) }

    func moment(of key: UInt64) -> UInt64? {
        guard count > 0 else { return nil }
        let slot = slot(of: key)
        return words[slot] == 0 ? nil : moment(at: slot)
    }

    /// - Parameter maximumCount: the most keys that the table will hold.
    mutating func set(_ key: UInt64, _ moment: UInt64, maximumCount: Int) {
        if (count + 1) * 4 > words.count * 3 { grow(maximumCount: maximumCount) }
        let slot = slot(of: key)
        if words[slot] == 0 { count += 1 }
        words[slot] = key << UInt64(Self.momentBits - 32) | moment >> 32
        tails[slot] = UInt32(truncatingIfNeeded: moment)
    }

    private func moment(at slot: Int) -> UInt64 {
        (words[slot] & (1 << UInt64(Self.momentBits - 32) - 1)) << 32 | UInt64(tails[slot])
    }

    private func key(at slot: Int) -> UInt64 { words[slot] >> UInt64(Self.momentBits - 32) }

    /// The slot of the key, or the free slot for it.
    private func slot(of key: UInt64) -> Int {
        // Scales the key to the size of the table.
        var slot = Int((key << UInt64(64 - Self.keyBits)).multipliedFullWidth(by: UInt64(words.count)).high)
        while words[slot] != 0, self.key(at: slot) != key {
            slot += 1
            if slot == words.count { slot = 0 }
        }
        return slot
    }

    private mutating func grow(maximumCount: Int) {
        let size = max(words.count + 1, min(max(words.count * 2, 64), maximumCount * 4 / 3 + 2))
        let before = self
        self = CompactTable()
        lastAt = before.lastAt
        words = Array(repeating: 0, count: size)
        tails = Array(repeating: 0, count: size)
        for slot in before.words.indices where before.words[slot] != 0 {
            set(before.key(at: slot), before.moment(at: slot), maximumCount: maximumCount)
        }
    }
}
