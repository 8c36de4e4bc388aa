import HTTP2
import PushProtocol
import ServiceKit

/// The APNs endpoints and the connection limit.
struct APNsSettings {
    static let productionURL = ConfigurationKey(
        "APNS_URL", .url(schemes: ["https"]), default: "https://api.push.apple.com",
        summary: "The URL for pushes to production registrations.")
    static let sandboxURL = ConfigurationKey(
        "APNS_SANDBOX_URL", .url(schemes: ["https"]), default: "https://api.sandbox.push.apple.com",
        summary: "The URL for pushes to development registrations.")
    static let caFile = ConfigurationKey(
        "PROVIDER_CA_FILE", .file, summary: "PEM file of trusted CA certificates; the system's trust store when absent."
    )
    static let connections = ConfigurationKey(
        "APNS_CONNECTIONS", .integer(1...64), default: "4",
        summary: "Maximum connections to one host with one signing key.")

    static let keys: [ConfigurationKey] = [productionURL, sandboxURL, caFile, connections]

    let endpoints: [ProviderEnvironment: HTTP2Endpoint]
    let client: HTTP2ClientConfiguration

    init(_ settings: Settings) throws(ConfigurationError) {
        let caFile = try settings.optionalString(Self.caFile)
        endpoints = [
            .production: try Self.endpoint(Self.productionURL, settings, caFile),
            .development: try Self.endpoint(Self.sandboxURL, settings, caFile),
        ]
        var client = HTTP2ClientConfiguration()
        client.maximumConnections = try settings.integer(Self.connections)
        self.client = client
    }

    private static func endpoint(
        _ key: ConfigurationKey, _ settings: Settings, _ caFile: String?
    ) throws(ConfigurationError) -> HTTP2Endpoint {
        let url = try settings.string(key)
        do {
            return try HTTP2Endpoint(url: url, caFile: caFile)
        } catch {
            throw ConfigurationError("\(key.name): \(error)")
        }
    }
}
