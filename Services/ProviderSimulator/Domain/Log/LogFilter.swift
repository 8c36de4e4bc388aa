import PushProtocol

/// A filter of logged requests. `nil` members match everything.
struct LogFilter: Hashable, Sendable {
    var token: String?
    var app: String?
    var environment: ProviderEnvironment?
    /// 0 for requests without a response.
    var status: Int?
    var reason: String?
    var fault: String?
    var connection: Int?
    /// The provider's id of the message, in any case.
    var messageID: String?

    func admits(_ entry: LoggedRequest) -> Bool {
        let response = entry.response
        if let token, response.target != token { return false }
        if let app, response.app != app { return false }
        if let environment, entry.environment != environment { return false }
        if let status, (response.status ?? 0) != status { return false }
        if let reason, response.reason != reason { return false }
        if let fault, response.fault != fault { return false }
        if let connection, entry.request.connection != connection { return false }
        if let messageID, response.messageID?.lowercased() != messageID.lowercased() { return false }
        return true
    }
}
