package import Logging
package import ServiceLifecycle

/// Runs `services` during `body`, then stops them gracefully and waits for their end. An error of a service cancels
/// `body` and is thrown.
package func withServices(
    _ services: [any Service], logger: Logger = .silent, _ body: @Sendable () async throws -> Void
) async throws {
    let group = ServiceGroup(services: services, logger: logger)
    try await withoutActuallyEscaping(body) { body in
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask {
                try await body()
                await group.triggerGracefulShutdown()
            }
            try await tasks.waitForAll()
        }
    }
}
