extension Array {
    /// Returns the elements in parts of at most `size`, in order; none for an empty array.
    ///
    /// - Parameter size: at least 1.
    package func chunks(ofAtMost size: Int) -> [[Element]] {
        stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
    }
}
