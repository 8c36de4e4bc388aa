import NIOCore

/// One timer for the deadlines of all requests.
///
/// The timer is set to the earliest deadline added since it was last set. When it fires, all requests are checked and
/// it is set to the earliest remaining deadline. With equal time-outs it fires once each time-out, so adding a request
/// costs one comparison.
struct DeadlineSchedule {
    /// The least time between two checks.
    private static let granularity = TimeAmount.milliseconds(5)

    private(set) var timer: NIODeadline?

    /// Adds a request's deadline; returns the new timer deadline, or nil if it is unchanged.
    mutating func added(_ deadline: NIODeadline) -> NIODeadline? {
        if let timer, timer <= deadline { return nil }
        timer = deadline
        return deadline
    }

    /// Returns the next timer deadline after the timer fired. `earliest` is the first remaining deadline.
    mutating func fired(now: NIODeadline, earliest: NIODeadline?) -> NIODeadline? {
        timer = earliest.map { max($0, now + Self.granularity) }
        return timer
    }
}
