import PushProtocol

extension Timestamp {
    /// Reads an argument such as `2026-03-31T09:00:00Z`.
    init(argument text: String) throws {
        guard let date = RFC3339.date(from: text) else {
            throw CommandError("“\(text)” is not a time such as 2026-03-31T09:00:00Z", .usage)
        }
        self.init(date)
    }
}
