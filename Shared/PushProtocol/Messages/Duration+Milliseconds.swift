extension Duration {
    /// Whole milliseconds, rounded towards zero. Clamped to the range of `Int64`.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1000)
        return overflows ? (seconds < 0 ? .min : .max) : whole.addingSaturated(attoseconds / 1_000_000_000_000_000)
    }
}
