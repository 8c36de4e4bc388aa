import HTTP2
import PushProtocol
import SenderService
import ServiceKit

/// The APNs endpoints and the connection limit.
struct APNsSettings {
    static let productionURL = ConfigurationKey(
        "APNS_URL", .url(schemes: ["https"]), default: "https://api.push.apple.com",
        summary: "The URL for pushes to production registrations.")
    static let sandboxURL = ConfigurationKey(
        "APNS_SANDBOX_URL", .url(schemes: ["https"]), default: "https://api.sandbox.push.apple.com",
        summary: "The URL for pushes to development registrations.")
    static let connections = ConfigurationKey(
        "APNS_CONNECTIONS", .integer(1...64), default: "4",
        summary: "Maximum connections to one host with one signing key.")

    static let keys: [ConfigurationKey] = [
        productionURL, sandboxURL, .apnsChannelsURL, .apnsChannelsSandboxURL, .providerCAFile, connections,
    ]

    let endpoints: [ProviderEnvironment: HTTP2Endpoint]
    let client: HTTP2ClientConfiguration
    /// The URLs of channel management, and the CA file of its hosts.
    let channels: [ProviderEnvironment: String]
    let caFile: String?

    init(_ settings: Settings) throws(ConfigurationError) {
        endpoints = [
            .production: try settings.endpoint(Self.productionURL),
            .development: try settings.endpoint(Self.sandboxURL),
        ]
        channels = [
            .production: try settings.string(.apnsChannelsURL),
            .development: try settings.string(.apnsChannelsSandboxURL),
        ]
        caFile = try settings.optionalString(.providerCAFile)
        var client = HTTP2ClientConfiguration()
        client.maximumConnections = try settings.integer(Self.connections)
        self.client = client
    }
}
