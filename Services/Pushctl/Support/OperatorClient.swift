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
        guard let url = components?.string else { throw CommandError("REGISTRY_URL is not a URL") }
        let key = try settings.string(Environment.operatorKey)
        let response: FetchResponse
        do {
            response = try await HTTPSFetch(timeout: .seconds(120)).send(
                FetchRequest(method: method, url: url, headers: [("authorization", "Bearer \(key)")]))
        } catch {
            throw CommandError("the registry at \(url): \(error)")
        }
        let answer = try? WireCoding.decode(JSONValue.self, from: response.body)
        guard response.status == 200, let answer else {
            throw CommandError("the registry answered \(response.status): \(answer?["detail"]?.string ?? "no reason")")
        }
        return answer
    }
}
