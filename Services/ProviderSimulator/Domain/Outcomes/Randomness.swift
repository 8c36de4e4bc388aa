/// Numbers that depend on nothing but a seed and what they are drawn for, so that a run can be repeated although the
/// requests of two runs interleave differently: the same seed gives the n-th request to a token the same fate.
struct Draws: Sendable {
    private var state: UInt64

    /// - Parameters:
    ///   - subject: what is drawn for, a token.
    ///   - turn: the how manieth time it is drawn for it.
    init(seed: UInt64, subject: String, turn: UInt64) {
        // FNV-1a over the subject; the generator's own mixing does the rest.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ seed
        for byte in subject.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        state = hash &+ turn &* 0xd134_2543_de82_ef95
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

    /// From 0 up to, but not including, 1.
    mutating func fraction() -> Double { Double(bits() >> 11) * 0x1p-53 }
}
