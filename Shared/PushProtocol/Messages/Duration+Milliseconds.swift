extension Duration {
    /// In whole milliseconds, rounded towards zero: the unit of ``Timestamp`` and of the bus.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
