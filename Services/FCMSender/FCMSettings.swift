import HTTP2
import ServiceKit

/// Where FCM and Google's token endpoint are, and how many connections may be held.
struct FCMSettings {
    static let url = ConfigurationKey(
        "FCM_URL", .url(schemes: ["https"]), default: "https://fcm.googleapis.com", summary: "Where pushes go.")
    static let tokenURL = ConfigurationKey(
        "FCM_TOKEN_URL", .url(schemes: ["https"]),
        summary: "Where access tokens are obtained; the service account's own token_uri when absent.")
    static let caFile = ConfigurationKey(
        "PROVIDER_CA_FILE", .file, summary: "PEM certificates the provider is trusted by; the system's when absent.")
    static let connections = ConfigurationKey(
        "FCM_CONNECTIONS", .integer(1...64), default: "10",
        summary: "The most connections with one service account, each of at most 100 requests at a time.")

    static let quota = ConfigurationKey(
        "FCM_QUOTA", .integer(1_000...1_000_000_000), default: "600000",
        summary: "Messages a minute that all fcm-senders together send to one project, unless the app's entry says it.")

    static let keys: [ConfigurationKey] = [url, tokenURL, caFile, connections, quota]

    let endpoint: HTTP2Endpoint
    let tokenURL: String?
    let caFile: String?
    let client: HTTP2ClientConfiguration
    /// Messages a minute and project.
    let quota: Int

    init(_ settings: Settings) throws(ConfigurationError) {
        let url = try settings.string(Self.url)
        caFile = try settings.optionalString(Self.caFile)
        tokenURL = try settings.optionalString(Self.tokenURL)
        do {
            endpoint = try HTTP2Endpoint(url: url, caFile: caFile)
        } catch {
            throw ConfigurationError("\(Self.url.name): \(error)")
        }
        var client = HTTP2ClientConfiguration()
        client.maximumConnections = try settings.integer(Self.connections)
        // Google closes connections that exceed a hundred streams, and those that ping (`push-protocols` B.4).
        client.maximumConcurrentStreams = 100
        client.pingAfter = nil
        self.client = client
        quota = try settings.integer(Self.quota)
    }
}
