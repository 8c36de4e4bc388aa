import Foundation
import HTTPSFetch
import PushProtocol
import PushSending
import ServiceKit

/// APNs' management of one app's broadcast channels, on hosts and ports of its own (`push-protocols` A.1, A.11).
struct ChannelDirectory {
    static let productionURL = ConfigurationKey(
        "APNS_CHANNELS_URL", .url(schemes: ["https"]),
        default: "https://api-manage-broadcast.push.apple.com:2196",
        summary: "Where production's broadcast channels are managed.")
    static let sandboxURL = ConfigurationKey(
        "APNS_CHANNELS_SANDBOX_URL", .url(schemes: ["https"]),
        default: "https://api-manage-broadcast.sandbox.push.apple.com:2195",
        summary: "Where development's broadcast channels are managed.")
    static let caFile = ConfigurationKey(
        "PROVIDER_CA_FILE", .file, summary: "PEM certificates APNs is trusted by; the system's when absent.")

    static let keys: [ConfigurationKey] = [productionURL, sandboxURL, caFile]

    let url: String
    private let bundle: String
    private let key: APNsSigningKey
    private let fetch: HTTPSFetch

    init(_ app: APNsAppConfiguration, _ environment: ProviderEnvironment, _ settings: Settings) throws {
        guard case .key(let key) = app.credential else {
            throw Refusal("broadcast channels are managed with a signing key; this app has certificates")
        }
        self.key = key
        bundle = app.topic
        url =
            switch environment {
            case .production: try settings.string(Self.productionURL)
            case .development: try settings.string(Self.sandboxURL)
            }
        fetch = HTTPSFetch(caFile: try settings.optionalString(Self.caFile))
    }

    /// Does it, and returns what to print.
    func perform(_ operation: ChannelOperation, now: Timestamp = .now) async throws -> [String] {
        guard let pem = try? String(contentsOfFile: key.keyFile, encoding: .utf8) else {
            throw Refusal("\(key.keyFile): the signing key cannot be read")
        }
        guard
            let token = try? await APNsProviderToken.sign(
                pem: pem, keyID: key.keyID, teamID: key.teamID, issuedAt: now)
        else { throw Refusal("\(key.keyFile): is not an ES256 signing key (PKCS#8 PEM, as downloaded from Apple)") }
        var request = FetchRequest(
            method: operation.method, url: url + operation.path(bundle: bundle),
            headers: [("authorization", "bearer \(token)")] + operation.headers, body: try operation.body())
        if !request.body.isEmpty { request.headers.append(("content-type", "application/json")) }
        let response: FetchResponse
        do {
            response = try await fetch.send(request)
        } catch {
            throw Refusal("APNs at \(url): \(error)")
        }
        return try operation.lines(
            status: response.status, channel: response["apns-channel-id"], body: response.body)
    }
}
