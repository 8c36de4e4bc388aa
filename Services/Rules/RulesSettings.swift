import HTTPAuth
import ServiceConnections
import ServiceKit

extension ConfigurationKey {
    static let rulesDirectory = ConfigurationKey(
        "RULES_DIRECTORY", .directory, required: true,
        summary: "The folder of the rule files, one <app>.yaml for each app, and no other files.")
    static let rulesHost = ConfigurationKey(
        "RULES_HOST", default: "127.0.0.1",
        summary: "The address that preferences and inboxes are served on; 0.0.0.0 in a container.")
    static let rulesPort = ConfigurationKey(
        "RULES_PORT", .port, default: "8081", summary: "The port that preferences and inboxes are served on.")
    static let rulesUserRequests = ConfigurationKey(
        "RULES_USER_REQUESTS", .integer(0...1_000_000), default: "300",
        summary: "The maximum requests per minute of one user; 0 for no limit.")
    static let rulesInboxDays = ConfigurationKey(
        "RULES_INBOX_DAYS", .integer(1...36_500), default: "90", summary: "How many days inbox items are kept.")
    // At least a week: the decisions of an hour are counted for three days (decision 48).
    static let rulesHistoryDays = ConfigurationKey(
        "RULES_HISTORY_DAYS", .integer(7...36_500), default: "30",
        summary: "How many days decisions, outcomes and receipts are kept, and repeated events are detected.")
    static let rulesKeyRequests = ConfigurationKey(
        "RULES_KEY_REQUESTS", .integer(0...1_000_000), default: "6000",
        summary: "The maximum requests per minute of one API key; 0 for no limit.")
    static let rulesCAFile = ConfigurationKey(
        "RULES_CA_FILE", .file,
        summary: "PEM certificates to verify the URLs of key sets with; the system's when absent.")
}

extension [ConfigurationKey] {
    static let rules: [ConfigurationKey] =
        .amqp + .postgres + .apps + [
            .rulesDirectory, .rulesHost, .rulesPort, .rulesUserRequests, .rulesKeyRequests, .rulesInboxDays,
            .rulesHistoryDays, .rulesCAFile, .bearerLifetime,
        ]
}

extension HistoryTerms {
    init(_ settings: Settings) throws(ConfigurationError) {
        self.init(
            inbox: .seconds(86_400 * (try settings.integer(.rulesInboxDays))),
            history: .seconds(86_400 * (try settings.integer(.rulesHistoryDays))))
    }
}
