package import Hummingbird
import Logging
import ServiceKit

extension Response {
    /// What `carryOut` answers. What it refuses and what goes wrong are told by `tell`; only the latter, whatever is thrown
    /// that is no ``APIRefusal``, is logged.
    package static func answering(
        _ context: some RequestContext, telling tell: (APIRefusal) -> Response = Response.problem,
        carryOut: () async throws -> Response
    ) async -> Response {
        do {
            return try await carryOut()
        } catch let refusal as APIRefusal {
            return tell(refusal)
        } catch {
            // The path as it was declared: those that are asked for have names in them.
            context.logger.error(
                "A request could not be answered",
                metadata: [LogKey.error: "\(error)", LogKey.path: "\(context.endpointPath ?? "")"])
            return tell(error.isDatabaseAway ? .databaseAway : .failed)
        }
    }
}
