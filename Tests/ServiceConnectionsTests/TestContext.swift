import ServiceKit
import ServiceLifecycle
import TestSupport

/// A service context without a process around it.
struct TestContext {
    let context: ServiceContext
    let readiness = Readiness()

    init(_ keys: [ConfigurationKey], _ environment: [String: String]) throws {
        context = ServiceContext(
            name: "sample", settings: try Settings.load(keys: keys, environment: environment),
            logger: CapturingLogger().logger, readiness: readiness)
    }

    /// Runs services while `body` runs, then shuts them down gracefully.
    func running(_ services: [any Service], _ body: () async throws -> Void) async throws {
        let group = ServiceGroup(services: services, logger: context.logger)
        let running = Task { try await group.run() }
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        await group.triggerGracefulShutdown()
        try await running.value
        try result.get()
    }

    func state(_ name: String) -> Readiness.State? {
        readiness.report.conditions.first { $0.name == name }?.state
    }

    /// Returns the reason of a condition; `nil` if it holds.
    func reason(_ name: String) -> String? {
        if case .waiting(let reason) = state(name) { reason } else { nil }
    }
}
