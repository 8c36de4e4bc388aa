import Hummingbird
import PushProtocol

/// The query of a request log: `?token=…&status=…&since=…&limit=…&count=true`.
struct RequestQuery: Hashable, Sendable {
    var filter = LogFilter()
    /// Only requests after this sequence number.
    var since = 0
    var limit = Int.max
    /// Answer with the count instead of the requests.
    var countsOnly = false

    static let known = [
        "app", "connection", "count", "environment", "fault", "id", "limit", "reason", "since", "status", "token",
    ]

    init(_ parameters: some Sequence<(key: Substring, value: Substring)>) throws(ControlRequestError) {
        for (key, value) in parameters {
            let text = String(value)
            switch key {
            case "token": filter.token = text
            case "app": filter.app = text
            case "reason": filter.reason = text
            case "fault": filter.fault = text
            case "id": filter.messageID = text
            case "status": filter.status = try Self.number(key, value)
            case "connection": filter.connection = try Self.number(key, value)
            case "environment":
                guard let environment = ProviderEnvironment(clientName: text) else {
                    throw ControlRequestError("environment is none of production, development, sandbox")
                }
                filter.environment = environment
            case "since": since = try Self.number(key, value)
            case "limit": limit = try Self.number(key, value)
            case "count": countsOnly = try Self.flag(key, value)
            default: throw ControlRequestError("\(key) is unknown; known are \(Self.known.joined(separator: ", "))")
            }
        }
    }

    static func number(_ key: Substring, _ value: Substring) throws(ControlRequestError) -> Int {
        guard let number = Int(value), number >= 0 else { throw ControlRequestError("\(key) is not a whole number") }
        return number
    }

    static func flag(_ key: Substring, _ value: Substring) throws(ControlRequestError) -> Bool {
        guard value == "true" || value == "false" else { throw ControlRequestError("\(key) is not true or false") }
        return value == "true"
    }
}

/// The query that ends a subscription: `?token=…&status=410`, or 404.
struct SubscriptionQuery: Hashable, Sendable {
    let token: String
    var ending = BrowserSubscription.Ending.gone

    init(_ parameters: some Sequence<(key: Substring, value: Substring)>) throws(ControlRequestError) {
        var token: String?
        for (key, value) in parameters {
            switch key {
            case "token": token = String(value)
            case "status":
                guard let ending = Int(value).flatMap(BrowserSubscription.Ending.init) else {
                    throw ControlRequestError("status is none of 404, 410")
                }
                self.ending = ending
            default: throw ControlRequestError("\(key) is unknown; known are status, token")
            }
        }
        guard let token else { throw ControlRequestError("token is missing") }
        self.token = token
    }
}
