import Glibc
import Hummingbird
import Logging
import NIOCore
import ServiceKit
import ServiceLifecycle

/// Serves the control port, plain HTTP, from the start of the process to its shutdown.
struct ControlServer: Service {
    let routes: ControlRoutes
    let host: String
    let port: Int
    let logger: Logger

    func run() async throws {
        do {
            try await application.run()
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            throw ConfigurationError(
                "\(ConfigurationKey.controlPort.name): \(host):\(port) is in use by another process; choose another port"
            )
        }
    }

    private var application: some ApplicationProtocol {
        // Hummingbird's own lines are about its business, not ours.
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        return Application(
            router: routes.router,
            configuration: ApplicationConfiguration(address: .hostname(host, port: port), serverName: nil),
            logger: quiet)
    }
}
