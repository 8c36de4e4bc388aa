import NIOCore

/// When to look for requests whose deadline has passed, without a timer for each of them.
///
/// One timer stands at the earliest deadline seen since it was last set. When it fires, all open requests are looked
/// at and it is set to the earliest of those left. Under a steady load of equal deadlines that is one look in each
/// span of a deadline, so a request costs one comparison.
struct DeadlineSchedule {
    /// Deadlines closer together than this share a look.
    private static let granularity = TimeAmount.milliseconds(5)

    private(set) var timer: NIODeadline?

    /// A request with this deadline came; returns when the timer must now fire if that changes.
    mutating func added(_ deadline: NIODeadline) -> NIODeadline? {
        if let timer, timer <= deadline { return nil }
        timer = deadline
        return deadline
    }

    /// The timer fired and `earliest` is the first deadline left; returns when it must fire again, if ever.
    mutating func fired(now: NIODeadline, earliest: NIODeadline?) -> NIODeadline? {
        timer = earliest.map { max($0, now + Self.granularity) }
        return timer
    }
}
