import Foundation
import Logging
import ServiceLifecycle

/// How every executable starts.
package enum ServiceMain {
    /// Runs a service until it is told to stop, and ends the process.
    ///
    /// - Parameters:
    ///   - name: the executable's name.
    ///   - summary: one sentence for `--help`.
    ///   - keys: the service's own keys, and the groups it uses (`.amqp + .postgres + …`).
    ///   - build: connections, then handlers, then the list of what runs. It does not wait for anything that may be
    ///     away: a broker or a database is a readiness condition, not a reason to stop.
    package static func run(
        _ name: String, summary: String = "", keys: [ConfigurationKey],
        build: @Sendable (ServiceContext) async throws -> ServiceAssembly
    ) async -> Never {
        let logger = Logger(label: name)
        do {
            let settings = try Settings.load(keys: keys, environment: ProcessInfo.processInfo.environment)
            let context = ServiceContext(
                name: name, instance: "", settings: settings, logger: logger, readiness: Readiness())
            let assembly = try await build(context)
            try await ServiceGroup(services: assembly.services, logger: logger).run()
            exit(0)
        } catch {
            logger.error("\(name): \(error)")
            exit(1)
        }
    }
}
