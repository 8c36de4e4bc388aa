import HTTP2
import PushProtocol
import ServiceKit

/// Where APNs is, and how many connections may be held to it.
struct APNsSettings {
    static let productionURL = ConfigurationKey(
        "APNS_URL", .url(schemes: ["https"]), default: "https://api.push.apple.com",
        summary: "Where pushes to production registrations go.")
    static let sandboxURL = ConfigurationKey(
        "APNS_SANDBOX_URL", .url(schemes: ["https"]), default: "https://api.sandbox.push.apple.com",
        summary: "Where pushes to development registrations go.")
    static let caFile = ConfigurationKey(
        "PROVIDER_CA_FILE", .file, summary: "PEM certificates the provider is trusted by; the system's when absent.")
    static let connections = ConfigurationKey(
        "APNS_CONNECTIONS", .integer(1...64), default: "4",
        summary: "The most connections to one host with one signing key.")

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
