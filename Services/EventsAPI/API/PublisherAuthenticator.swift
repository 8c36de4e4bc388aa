import HTTPAuth
import Hummingbird
import PushProtocol

/// An authenticated caller, and the app of its request.
struct Publisher: Sendable {
    let app: AppID
    let keyID: String
    let operations: Set<APIKey.Operation>

    func may(_ operation: APIKey.Operation) -> Bool { operations.contains(operation) }
}

/// Authenticates callers by an API key of rules, and determines the app of a request.
struct PublisherAuthenticator: Sendable {
    let keys: APIKeyAuthenticator
    /// The limit of ``keys``, to count the events of a batch.
    let limit: RateLimiter<String>
    let isConfigured: @Sendable (AppID) -> Bool

    /// Returns the caller of a request.
    ///
    /// The app is that of the key. A key for all apps needs the header `Heliograph-App` or the query parameter `app`;
    /// for other keys, both may only repeat the key's app.
    ///
    /// - Throws: 401 or 403 for the key, 400 without an app, 404 for an unknown app, 429 above the limit.
    func publisher(_ request: Request, to operation: APIKey.Operation) async throws -> Publisher {
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
        return Publisher(app: app, keyID: record.id, operations: record.operations)
    }

    /// Counts further events of a caller's request. The request itself counts as one.
    func charge(_ events: Int, to caller: Publisher) { limit.charge(events, to: caller.keyID) }

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
