package import Logging
package import ServiceLifecycle

/// Runs `services` as an executable does while `body` runs, then stops them gracefully and waits for their end. What they
/// fail with ends `body` too, and is what is thrown.
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
