package import Logging
package import NIOCore
import Hummingbird

/// What a service's build function starts from.
package struct ServiceContext: Sendable {
    /// The executable's name, such as `token-registry`.
    package let name: String
    /// This process among others of the same service.
    package let instance: String
    package let settings: Settings
    /// Carries the service and the instance; hand out copies.
    package let logger: Logger
    package let readiness: Readiness

    /// For tests, which build a service without starting a process.
    package init(name: String, instance: String = "test", settings: Settings, logger: Logger, readiness: Readiness) {
        self.name = name
        self.instance = instance
        self.settings = settings
        self.logger = logger
        self.readiness = readiness
    }

    /// The process's threads for sockets: shared, never shut down.
    package var eventLoopGroup: any EventLoopGroup { EventLoopGroupProvider.singleton.eventLoopGroup }

    /// The apps of the catalog that `HELIOGRAPH_APPS` names, and of the files that it names those which the process uses.
    package func apps(using files: AppCatalog.Files) throws(ConfigurationError) -> AppCatalog {
        try AppCatalog.load(path: settings.string(.apps), using: files)
    }
}
