import Hummingbird

/// What a question to the request log asks for: `?token=…&since=…&limit=…&count=true`.
struct RequestQuery: Hashable, Sendable {
    var token: String?
    /// A sequence number: only later requests.
    var since = 0
    var limit = Int.max
    /// Only how many.
    var countsOnly = false

    init(_ parameters: some Sequence<(key: Substring, value: Substring)>) throws(ControlProblem) {
        for (key, value) in parameters {
            switch key {
            case "token": token = String(value)
            case "since": since = try Self.number(key, value)
            case "limit": limit = try Self.number(key, value)
            case "count":
                guard value == "true" || value == "false" else { throw ControlProblem("count is not true or false") }
                countsOnly = value == "true"
            default: throw ControlProblem("\(key) is unknown; known are count, limit, since, token")
            }
        }
    }

    private static func number(_ key: Substring, _ value: Substring) throws(ControlProblem) -> Int {
        guard let number = Int(value), number >= 0 else { throw ControlProblem("\(key) is not a whole number") }
        return number
    }
}
