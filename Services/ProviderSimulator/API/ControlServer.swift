import Glibc
import Hummingbird
import Logging
import NIOCore
import ServiceKit
import ServiceLifecycle

/// Serves the control port over plain HTTP until the process shuts down.
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
        // Hummingbird logs below warning level are not useful here.
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        return Application(
            router: routes.router,
            configuration: ApplicationConfiguration(address: .hostname(host, port: port), serverName: nil),
            logger: quiet)
    }
}
