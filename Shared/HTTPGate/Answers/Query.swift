package import Hummingbird
package import PushProtocol

/// The query of a request, read by name.
package struct Query {
    private let parameters: [String: String]

    /// Of a name that is there twice, the first counts.
    package init(_ request: Request) {
        let pairs = request.uri.queryParameters.map { (String($0.key), String($0.value)) }
        parameters = Dictionary(pairs) { first, _ in first }
    }

    package func has(_ name: String) -> Bool { parameters[name] != nil }

    package subscript(name: String) -> String? { parameters[name] }

    /// The parameter `app`.
    package func app() throws(APIRefusal) -> AppID {
        guard let app = parameters["app"].flatMap({ AppID(rawValue: $0) }) else { throw .query("app", "an app id") }
        return app
    }

    /// The parameter `user`.
    package func user() throws(APIRefusal) -> UserID {
        guard let user = parameters["user"].flatMap({ UserID(rawValue: $0) }) else { throw .query("user", "a user id") }
        return user
    }
}

extension APIRefusal {
    /// - Parameter expected: with its article.
    package static func query(_ name: String, _ expected: String) -> APIRefusal {
        APIRefusal(status: .badRequest, message: "the query parameter \(name) is missing or not \(expected)")
    }
}
