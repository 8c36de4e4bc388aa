/// A stable number for a user, by which evidence counts people without naming them.
///
/// Two users may share a number; they then count as one. On the wire it is an integer from 0 to 2^53 - 1, which every JSON
/// reader keeps exactly.
package struct OwnerKey: RawRepresentable, Codable, Hashable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    /// The FNV-1a hash of the user's id, cut to 53 bits.
    package init(_ user: UserID) {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in user.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        // The upper bits of a short text are mixed least.
        rawValue = Int64((hash ^ hash >> 53) & 0x1f_ffff_ffff_ffff)
    }
}
