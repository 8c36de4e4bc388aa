import HTTP2
import SenderService
import ServiceKit

/// The FCM and OAuth endpoints, the connection limit and the default quota.
struct FCMSettings {
    static let url = ConfigurationKey(
        "FCM_URL", .url(schemes: ["https"]), default: "https://fcm.googleapis.com", summary: "The URL of the FCM API.")
    static let tokenURL = ConfigurationKey(
        "FCM_TOKEN_URL", .url(schemes: ["https"]),
        summary: "The OAuth token endpoint; the service account's token_uri when absent.")
    static let connections = ConfigurationKey(
        "FCM_CONNECTIONS", .integer(1...64), default: "10",
        summary: "Maximum connections with one service account, each with up to 100 concurrent requests.")

    static let quota = ConfigurationKey(
        "FCM_QUOTA", .integer(1_000...1_000_000_000), default: "600000",
        summary: "Messages a minute that all fcm-senders together send to one project; an app's entry takes precedence."
    )

    static let validateOnly = ConfigurationKey(
        "FCM_VALIDATE_ONLY", .boolean, default: "no",
        summary: "Whether FCM only validates messages, for trials with real credentials; no phone gets a push.")

    static let keys: [ConfigurationKey] = [url, tokenURL, .providerCAFile, connections, quota, validateOnly]

    let endpoint: HTTP2Endpoint
    let tokenURL: String?
    let caFile: String?
    let client: HTTP2ClientConfiguration
    /// The default quota of a project, in messages a minute.
    let quota: Int
    /// Whether FCM validates messages and delivers none.
    let validateOnly: Bool

    init(_ settings: Settings) throws(ConfigurationError) {
        caFile = try settings.optionalString(.providerCAFile)
        tokenURL = try settings.optionalString(Self.tokenURL)
        endpoint = try settings.endpoint(Self.url)
        var client = HTTP2ClientConfiguration()
        client.maximumConnections = try settings.integer(Self.connections)
        // FCM closes connections with more than 100 streams, and connections on which a client sends PING
        // (ProviderFacts.md §B.4).
        client.maximumConcurrentStreams = 100
        client.pingAfter = nil
        self.client = client
        quota = try settings.integer(Self.quota)
        validateOnly = try settings.boolean(Self.validateOnly)
    }
}
