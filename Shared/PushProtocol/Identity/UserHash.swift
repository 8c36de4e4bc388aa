/// A hash of a user id. Feedback counts distinct users by it without storing their ids.
///
/// Two users may collide and then count as one. Encoded as an integer from 0 to 2^53 - 1, which every JSON parser
/// represents exactly.
package struct UserHash: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    /// The FNV-1a hash of the user id, truncated to 53 bits.
    package init(_ user: UserID) {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in user.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        // Folds in the upper bits, which vary least for short texts.
        rawValue = Int64((hash ^ hash >> 53) & 0x1f_ffff_ffff_ffff)
    }
}
