package import Hummingbird
import Logging
import ServiceConnections
import ServiceKit

extension Response {
    /// Returns `body`'s response, or `onError`'s response to the error thrown. Logs every error but ``APIError``.
    package static func answering(
        _ context: some RequestContext, onError errorResponse: (APIError) -> Response = Response.problem,
        body: () async throws -> Response
    ) async -> Response {
        do {
            return try await body()
        } catch let error as APIError {
            return errorResponse(error)
        } catch {
            // Logs the route's path: requested paths contain user ids.
            context.logger.error(
                "Request failed",
                metadata: [LogKey.error: "\(error)", LogKey.path: "\(context.endpointPath ?? "")"])
            return errorResponse(error.isDatabaseUnavailable ? .databaseUnavailable : .failed)
        }
    }
}
