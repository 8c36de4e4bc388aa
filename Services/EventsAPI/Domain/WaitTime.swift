/// The query parameter `wait`: how long a publisher waits for the decisions about its events.
enum WaitTime {
    static let maximum = Duration.seconds(30)
    /// The maximum number of events in a request that waits.
    static let maximumEvents = 10

    /// Parses `5s`, `500ms` or a number of seconds.
    static func parse(_ text: String) throws(EventRefusal) -> Duration {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard (1...5).contains(digits.count), let number = Int(digits) else { throw invalid }
        let duration: Duration
        switch text.dropFirst(digits.count) {
        case "", "s": duration = .seconds(number)
        case "ms": duration = .milliseconds(number)
        default: throw invalid
        }
        guard duration <= maximum else { throw invalid }
        return duration
    }

    private static var invalid: EventRefusal {
        .invalid("the query parameter wait is not a time from 0s to \(maximum.components.seconds)s, such as 5s")
    }
}
