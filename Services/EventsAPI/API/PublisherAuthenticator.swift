import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

/// An authenticated publisher, and the app of its request.
struct Publisher: Sendable {
    let app: AppID
    /// Identifies the caller for its limit: the id of an API key, or app and name of a bearer token.
    let id: String
    let operations: Set<APIKey.Operation>
    /// The types of events that a bearer token allows; nil for every type.
    var types: AllowedTypes?

    func may(_ operation: APIKey.Operation) -> Bool { operations.contains(operation) }
}

/// Authenticates publishers by an API key of rules or a bearer token, and determines the app of a request.
struct PublisherAuthenticator: Sendable {
    let keys: APIKeyAuthenticator
    /// Verifies bearer tokens of ``TokenHolder/publisher``.
    let tokens: BearerAuthenticator
    /// The limit of ``keys``, which bearer tokens have too. Counts the events of a batch.
    let limit: RateLimiter<String>
    let isConfigured: @Sendable (AppID) -> Bool

    /// Returns the caller of a request.
    ///
    /// The app is that of the key or the token. A key for all apps needs the header `Heliograph-App` or the query
    /// parameter `app`; for other callers, both may only repeat the caller's app.
    ///
    /// - Throws: 401 or 403 for the key or the token, 400 without an app, 404 for an unknown app, 429 above the limit.
    func publisher(_ request: Request, to operation: APIKey.Operation) async throws -> Publisher {
        // An API key has no dot, and a JWT has two.
        if let token = request.bearerToken, token.contains(".") {
            return try await publisher(token, request, to: operation)
        }
        let caller = try await keys.caller(request.bearerToken, to: operation)
        guard case .key(let record) = caller else {
            throw APIError(status: .unauthorized, message: "send an API key of rules")
        }
        let named = try Self.namedApp(request)
        guard let app = named ?? record.app else {
            throw APIError(
                status: .badRequest,
                message:
                    "the API key is for all apps: name the app in the header Heliograph-App or the query parameter "
                    + "app")
        }
        try keys.authorize(caller, to: operation, of: app)
        guard isConfigured(app) else {
            throw APIError(status: .notFound, message: "the app is not configured; see the apps file")
        }
        return Publisher(app: app, id: record.id, operations: record.operations)
    }

    /// Returns the holder of a bearer token, whose key determines the app.
    private func publisher(
        _ token: String, _ request: Request, to operation: APIKey.Operation
    ) async throws -> Publisher {
        let verified = try await tokens.verified(token)
        guard let scope = PublisherScope(verified.claims) else { throw APIError.failed }
        let (app, name) = (verified.caller.app, verified.caller.user)
        let id = "\(app.rawValue)/\(name.rawValue)"
        try limit.admit(id)
        guard scope.operations.contains(operation) else {
            throw APIError(
                status: .forbidden, message: "the bearer token does not allow \(operation.rawValue); see its scope",
                challenge: #"Bearer error="insufficient_scope", scope="\#(operation.rawValue)""#)
        }
        let named = try Self.namedApp(request)
        guard named == nil || named == app else {
            throw APIError(
                status: .forbidden, message: "the bearer token is for another app",
                challenge: #"Bearer error="insufficient_scope""#)
        }
        return Publisher(
            app: app, id: id, operations: scope.operations, types: scope.eventTypes.map(AllowedTypes.init))
    }

    /// Counts further events of a caller's request. The request itself counts as one.
    func charge(_ events: Int, to caller: Publisher) { limit.charge(events, to: caller.id) }

    private static func namedApp(_ request: Request) throws(APIError) -> AppID? {
        let query = QueryParameters(request)
        let inQuery = query.has("app") ? try query.app() : nil
        guard let text = request.headers[.app] else { return inQuery }
        guard let app = AppID(rawValue: text), inQuery == nil || inQuery == app else {
            throw APIError(
                status: .badRequest,
                message: "the header Heliograph-App is not an app id, or differs from the query parameter app")
        }
        return app
    }
}
