import Foundation
import HTTPSFetch
import Providers
import PushProtocol
import PushSending
import ServiceKit

/// A client of APNs channel management, which has its own hosts and ports (ProviderFacts.md §A.1, §A.11).
struct ChannelManagementClient {
    static let caFile = ConfigurationKey(
        "PROVIDER_CA_FILE", .file, summary: "CA certificates (PEM) for APNs. Default: the system's.")

    static let keys: [ConfigurationKey] = [.apnsChannelsURL, .apnsChannelsSandboxURL, caFile]

    let url: String
    private let bundle: String
    private let key: APNsSigningKey
    private let fetch: HTTPSFetch

    init(_ app: APNsAppConfiguration, _ environment: ProviderEnvironment, _ settings: Settings) throws {
        guard case .key(let key) = app.credential else {
            throw CommandError("channel management needs a signing key; this app has certificates")
        }
        self.key = key
        bundle = app.topic
        url =
            switch environment {
            case .production: try settings.string(.apnsChannelsURL)
            case .development: try settings.string(.apnsChannelsSandboxURL)
            }
        fetch = HTTPSFetch(caFile: try settings.optionalString(Self.caFile))
    }

    func perform(_ operation: ChannelOperation, now: Timestamp = .now) async throws -> ChannelOperation.Result {
        guard let pem = try? String(contentsOfFile: key.keyFile, encoding: .utf8) else {
            throw CommandError("\(key.keyFile): the signing key cannot be read", .notFound)
        }
        guard
            let token = try? await APNsProviderToken.sign(
                pem: pem, keyID: key.keyID, teamID: key.teamID, issuedAt: now)
        else {
            throw CommandError("\(key.keyFile): is not an ES256 signing key (PKCS#8 PEM, as downloaded from Apple)")
        }
        var request = FetchRequest(
            method: operation.method, url: url + operation.path(bundle: bundle),
            headers: [("authorization", "bearer \(token)")] + operation.headers, body: try operation.body())
        if !request.body.isEmpty { request.headers.append(("content-type", "application/json")) }
        let response: FetchResponse
        do {
            response = try await fetch.send(request)
        } catch {
            throw CommandError("APNs at \(url): \(error)", .unavailable)
        }
        return try operation.result(
            status: response.status, channel: response["apns-channel-id"], body: response.body)
    }
}
