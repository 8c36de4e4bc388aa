import PushProtocol

/// Which logged requests a question is about; what is `nil` does not matter.
struct LogFilter: Hashable, Sendable {
    var token: String?
    var app: String?
    var environment: ProviderEnvironment?
    /// 0 for requests that got no answer.
    var status: Int?
    var reason: String?
    var fault: String?
    var connection: Int?
    /// The provider's name for the message, in any case.
    var messageID: String?

    func admits(_ entry: LoggedRequest) -> Bool {
        let verdict = entry.verdict
        if let token, verdict.target != token { return false }
        if let app, verdict.app != app { return false }
        if let environment, entry.environment != environment { return false }
        if let status, (verdict.status ?? 0) != status { return false }
        if let reason, verdict.reason != reason { return false }
        if let fault, verdict.fault != fault { return false }
        if let connection, entry.request.connection != connection { return false }
        if let messageID, verdict.messageID?.lowercased() != messageID.lowercased() { return false }
        return true
    }
}
