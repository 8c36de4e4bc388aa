/// Random numbers that depend only on a seed, a subject and a draw number. The n-th request to a token gets the same
/// numbers in every run, however requests interleave.
struct SeededRandom: Sendable {
    private var state: UInt64

    /// - Parameters:
    ///   - subject: usually a token.
    ///   - drawNumber: how many times numbers were drawn for the subject, from 1.
    init(seed: UInt64, subject: String, drawNumber: UInt64) {
        // FNV-1a over the subject; the generator mixes it further.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ seed
        for byte in subject.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        state = hash &+ drawNumber &* 0xd134_2543_de82_ef95
        _ = bits()
    }

    /// SplitMix64.
    private mutating func bits() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// In 0..<1.
    mutating func fraction() -> Double { Double(bits() >> 11) * 0x1p-53 }
}
