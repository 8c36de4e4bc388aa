package import Logging
package import NIOCore
import Hummingbird

/// The input of a service's build function.
package struct ServiceContext: Sendable {
    /// The executable's name, such as `token-registry`.
    package let name: String
    /// The process's name among the instances of the service.
    package let instance: String
    package let settings: Settings
    /// Has the service and the instance as metadata.
    package let logger: Logger
    package let readiness: Readiness
    /// The gauges that are read at each scrape.
    package let samples: MetricSamples

    /// Creates a context; for tests, which build a service without a process.
    package init(
        name: String, instance: String = "test", settings: Settings, logger: Logger, readiness: Readiness,
        samples: MetricSamples = MetricSamples()
    ) {
        self.name = name
        self.instance = instance
        self.settings = settings
        self.logger = logger
        self.readiness = readiness
        self.samples = samples
    }

    /// The process's event loops: shared, never shut down.
    package var eventLoopGroup: any EventLoopGroup { EventLoopGroupProvider.singleton.eventLoopGroup }

    /// Reads the app catalog of `HELIOGRAPH_APPS` and checks its files of the kinds that the process uses.
    package func apps(using files: AppCatalog.Files) throws(ConfigurationError) -> AppCatalog {
        try AppCatalog.load(path: settings.string(.apps), using: files)
    }
    /// Creates the service that adds new apps of `HELIOGRAPH_APPS` while the process runs. Registers the readiness
    /// condition `apps`, which is degraded while the file, or a new app, is not in use.
    ///
    /// - Parameters:
    ///   - served: the apps that the process serves from its start.
    ///   - files: the kinds of files that the process uses.
    ///   - add: starts to serve an app. Throws if the app cannot be served yet.
    package func appReloader(
        _ served: AppCatalog, using files: AppCatalog.Files,
        add: @escaping @Sendable (AppConfiguration) async throws -> Void
    ) throws(ConfigurationError) -> AppReloader {
        AppReloader(
            path: try settings.string(.apps), served: served, using: files,
            condition: readiness.condition("apps", .degraded("the apps file is not watched yet")), logger: logger,
            add: add)
    }
}
