extension Duration {
    /// In whole milliseconds, rounded towards zero: the unit of ``Timestamp`` and of the bus. What is longer than they can count
    /// is as long as they can.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1000)
        return overflows ? (seconds < 0 ? .min : .max) : whole.plus(attoseconds / 1_000_000_000_000_000)
    }
}
