import HTTPAuth
import FoundationEssentials
import HTTPSFetch
import HTTPTypes
import PushProtocol

/// An operators' HTTP API, called with the console's key.
struct OperatorAPI: Sendable {
    /// `rules` or `token-registry`, for messages.
    let service: String
    /// Without a slash at the end.
    let address: String
    let fetch: HTTPSFetch
    private let key: String

    init(service: String, address: String, key: String, fetch: HTTPSFetch) {
        self.service = service
        self.address = address.hasSuffix("/") ? String(address.dropLast()) : address
        self.key = key
        self.fetch = fetch
    }

    /// - Parameter query: parameters without a value are left out.
    func get(_ path: String, _ query: [(String, String?)] = []) async throws(APIError) -> JSONValue {
        try await send("GET", path, query, body: nil)
    }

    func post(
        _ path: String, _ query: [(String, String?)] = [], body: JSONValue? = nil
    ) async throws(APIError) -> JSONValue {
        try await send("POST", path, query, body: body)
    }

    private func send(
        _ method: String, _ path: String, _ query: [(String, String?)], body: JSONValue?
    ) async throws(APIError) -> JSONValue {
        let text = FormCoding.text(query.compactMap { name, value in value.map { (name, $0) } })
        var headers = [(name: "Authorization", value: "Bearer \(key)")]
        if body != nil { headers.append(("Content-Type", "application/json")) }
        let answer: FetchResponse
        do {
            answer = try await fetch.send(
                FetchRequest(
                    method: method, url: address + path + (text.isEmpty ? "" : "?\(text)"), headers: headers,
                    // Values read from JSON always encode.
                    body: body.flatMap { try? WireCoding.encode($0) } ?? []))
        } catch {
            throw APIError(status: .badGateway, message: "\(service) does not answer: \(error.description).")
        }
        let document = try? WireCoding.decode(JSONValue.self, from: answer.body)
        guard (200..<300).contains(answer.status), let document else { throw refusal(answer.status, document) }
        return document
    }

    private func refusal(_ status: Int, _ problem: JSONValue?) -> APIError {
        let detail = problem?["detail"]?.string ?? "status \(status)"
        return switch status {
        case 401, 403:
            APIError(
                status: .badGateway,
                message:
                    "\(service) refuses the console's API key: \(detail). An operator corrects the key's operations.")
        case 404: APIError(status: .notFound, message: "\(service): \(detail).")
        case 400..<500: APIError(status: .badRequest, message: "\(service): \(detail).")
        default: APIError(status: .badGateway, message: "\(service): \(detail). Try again.")
        }
    }
}
