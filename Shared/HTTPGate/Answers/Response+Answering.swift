package import Hummingbird
import Logging
import ServiceKit

extension Response {
    /// What `carryOut` answers. What it refuses and what goes wrong are told by `tell`; only the latter is logged: it is the
    /// database, as whatever is thrown that is no ``APIRefusal``.
    package static func answering(
        _ context: some RequestContext, telling tell: (APIRefusal) -> Response = Response.problem,
        carryOut: () async throws -> Response
    ) async -> Response {
        do {
            return try await carryOut()
        } catch let refusal as APIRefusal {
            return tell(refusal)
        } catch {
            context.logger.error("A request could not be answered", metadata: [LogKey.error: "\(error)"])
            return tell(.databaseAway)
        }
    }
}
