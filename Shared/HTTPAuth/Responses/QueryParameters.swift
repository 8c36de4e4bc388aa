package import Hummingbird
package import PushProtocol

/// The query parameters of a request.
package struct QueryParameters {
    private let parameters: [String: String]

    /// Reads a request's query; of a repeated parameter the first value is used.
    package init(_ request: Request) {
        let pairs = request.uri.queryParameters.map { (String($0.key), String($0.value)) }
        parameters = Dictionary(pairs) { first, _ in first }
    }

    package func has(_ name: String) -> Bool { parameters[name] != nil }

    package subscript(name: String) -> String? { parameters[name] }

    /// The parameter `limit`, a number from 1 to `maximum`.
    package func limit(maximum: Int) throws(APIError) -> Int? {
        guard let text = parameters["limit"] else { return nil }
        guard let limit = Int(text), (1...maximum).contains(limit) else {
            throw .query("limit", "a number from 1 to \(maximum)")
        }
        return limit
    }

    /// A parameter that is `true` or `false`; `nil` without it.
    package func flag(_ name: String) throws(APIError) -> Bool? {
        guard let text = parameters[name] else { return nil }
        guard let flag = Bool(text) else { throw .query(name, "true or false") }
        return flag
    }

    package func app() throws(APIError) -> AppID {
        guard let app = parameters["app"].flatMap({ AppID(rawValue: $0) }) else { throw .query("app", "an app id") }
        return app
    }

    package func user() throws(APIError) -> UserID {
        guard let user = parameters["user"].flatMap({ UserID(rawValue: $0) }) else { throw .query("user", "a user id") }
        return user
    }
}

extension APIError {
    package static let unknownApp = APIError(
        status: .notFound, message: "the query parameter app names no configured app; see the apps file")

    /// Returns a 400 for a missing or invalid parameter. `expected` includes its article.
    package static func query(_ name: String, _ expected: String) -> APIError {
        APIError(status: .badRequest, message: "the query parameter \(name) is missing or not \(expected)")
    }
}
