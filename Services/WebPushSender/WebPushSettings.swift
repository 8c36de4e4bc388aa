import HTTP2
import Providers
import SenderService
import ServiceKit

/// The limits of connections, and the permitted push services.
struct WebPushSettings {
    static let origins = ConfigurationKey(
        "WEBPUSH_ORIGINS", .integer(1...10_000), default: "100",
        summary: "Maximum push services that an app has connections to at the same time.")
    static let connections = ConfigurationKey(
        "WEBPUSH_CONNECTIONS", .integer(1...64), default: "2",
        summary: "Maximum connections with one push service for an app, each with up to 100 concurrent requests.")

    static let keys: [ConfigurationKey] = [.providerCAFile, origins, connections, .webPushPrivateNetworks]

    let caFile: String?
    let origins: Int
    let client: HTTP2ClientConfiguration
    let policy: WebPushEndpoint.Policy

    init(_ settings: Settings) throws(ConfigurationError) {
        caFile = try settings.optionalString(.providerCAFile)
        origins = try settings.integer(Self.origins)
        var client = HTTP2ClientConfiguration()
        client.maximumConnections = try settings.integer(Self.connections)
        client.maximumConcurrentStreams = 100
        client.connectTimeout = .seconds(5)
        // A push service is chosen by a client: its answers must not fill the memory.
        client.maximumResponseBody = 4 * 1024
        client.maximumWaiting = 10_000
        self.client = client
        policy = WebPushEndpoint.Policy(privateNetworks: try settings.boolean(.webPushPrivateNetworks))
    }
}
