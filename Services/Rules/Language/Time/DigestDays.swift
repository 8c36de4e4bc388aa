/// The local dates that have a digest.
package enum DigestDays: Hashable, Sendable {
    case every
    /// At least one day.
    case weekdays(Set<Weekday>)
    /// Days of the month, from 1 to 31, at least one. A month without the day has no digest for it.
    case monthDays(Set<Int>)

    func contains(_ date: LocalDate) -> Bool {
        switch self {
        case .every: true
        case .weekdays(let days): days.contains(date.weekday)
        case .monthDays(let days): days.contains(date.day)
        }
    }
}
