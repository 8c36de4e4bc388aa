import Foundation
import HTTPSFetch
import PushProtocol
import ServiceKit

/// A client of the registry's operator API. It uses the key in REGISTRY_OPERATOR_KEY: the registry's own, or one from
/// `pushctl keys`.
enum OperatorClient {
    static func request(_ method: String, _ path: String, _ query: [String: String]) async throws -> JSONValue {
        let settings = try Environment.settings([Environment.registryURL, Environment.operatorKey])
        var components = URLComponents(string: try settings.string(Environment.registryURL))
        components?.path = path
        components?.queryItems = query.map { URLQueryItem(name: $0.key, value: $0.value) }
        // The server would decode a plus as a space.
        let encoded = components?.percentEncodedQuery?.replacing("+", with: "%2B")
        components?.percentEncodedQuery = encoded
        guard let url = components?.string else { throw CommandError("REGISTRY_URL is not a URL", .configuration) }
        let key = try settings.string(Environment.operatorKey)
        let response: FetchResponse
        do {
            response = try await HTTPSFetch(timeout: .seconds(120)).send(
                FetchRequest(method: method, url: url, headers: [("authorization", "Bearer \(key)")]))
        } catch {
            throw CommandError("the registry: \(error)", .unavailable)
        }
        let answer = try? WireCoding.decode(JSONValue.self, from: response.body)
        guard response.status == 200, let answer else {
            let reason = answer?["detail"]?.string ?? "no reason"
            throw CommandError("the registry answered \(response.status): \(reason)", Self.exitStatus(response.status))
        }
        return answer
    }

    /// The exit code for an HTTP status other than 200.
    static func exitStatus(_ status: Int) -> CommandStatus {
        switch status {
        case 401, 403: .permission
        case 404, 410: .notFound
        case 429: .temporary
        case 502, 503, 504: .unavailable
        case 500...: .unexpected
        default: .findings
        }
    }
}
