package import Hummingbird
package import PushProtocol

extension BearerAuthenticator {
    /// Authenticates the user and returns `body`'s response, or a problem document.
    package func answer(
        _ request: Request, _ context: some RequestContext, body: (Caller) async throws -> Response
    ) async -> Response {
        await .answering(context) { try await body(try await authenticate(request.bearerToken)) }
    }
}

extension APIKeyAuthenticator {
    /// A parsed request: its app (`nil` for all apps) and its response.
    package typealias OperatorRequest = (app: AppID?, answer: () async throws -> JSONValue)

    /// Authenticates the key, parses the query, authorizes the key for the query's app, and answers with JSON.
    package func answer(
        _ request: Request, _ context: some RequestContext, _ operation: APIKey.Operation,
        _ read: (QueryParameters) throws -> OperatorRequest
    ) async -> Response {
        await .answering(context) {
            // Authenticates before parsing: without a key, an error must not reveal the parameters.
            let caller = try await self.caller(request.bearerToken, to: operation)
            let parsed = try read(QueryParameters(request))
            try self.authorize(caller, to: operation, of: parsed.app)
            return .json(.ok, try await parsed.answer())
        }
    }
}
