import CoreMetrics
import Foundation
import Logging
import ServiceLifecycle

/// A process, from its validated settings to its exit code.
struct ServiceProcess {
    private let settings: Settings
    private let context: ServiceContext
    private let admin: AdminServer
    private let shutdown: Shutdown
    private let levelFile: LogLevelFile?

    private var logger: Logger { context.logger }

    /// Sets up the process's logging and metrics; call it once a process.
    init(name: String, settings: Settings) throws(ConfigurationError) {
        self.settings = settings
        let instance = try settings.optionalString(.instance) ?? ProcessInfo.processInfo.hostName
        let logs = LogSink(descriptor: STDERR_FILENO)
        let level = CurrentLogLevel(Logger.Level(rawValue: try settings.string(.logLevel)) ?? .info)
        let handler = try Self.handler(settings, level: level, sink: logs)
        LoggingSystem.bootstrap { handler($0, name, instance) }
        let logger = Logger(label: name)
        levelFile = try settings.optionalString(.logLevelFile).map {
            LogLevelFile(path: $0, current: level, logger: logger)
        }
        let registry = PrometheusRegistry()
        MetricsSystem.bootstrap(registry)
        let readiness = Readiness()
        context = ServiceContext(
            name: name, instance: instance, settings: settings, logger: logger, readiness: readiness)
        admin = AdminServer(
            host: try settings.string(.adminHost), port: try settings.integer(.adminPort),
            exposition: Exposition(
                service: name, registry: registry, samples: context.samples, logs: logs, readiness: readiness),
            readiness: readiness, logger: logger)
        shutdown = Shutdown(deadline: try settings.duration(.shutdownDeadline), logger: logger)
    }

    func run(_ build: @Sendable (ServiceContext) async throws -> ServiceAssembly) async throws -> ExitCode {
        await shutdown.watch()
        logger.info("Starting", metadata: [LogKey.version: "\(Build.version)"])
        let assembly = try await build(context)
        let memoryRelease = Task { await StartupMemory.releaseRepeatedly() }
        defer { memoryRelease.cancel() }
        let group = ServiceGroup(configuration: try configuration(for: assembly))
        shutdown.attach(group)
        do {
            try await group.run()
        } catch {
            // After the deadline, the error is the cancellation.
            guard shutdown.exceededDeadline else { throw error }
        }
        guard !shutdown.exceededDeadline else {
            logger.warning("Stopped after the deadline; the broker redelivers unacknowledged messages")
            return .failure
        }
        logger.info("Stopped")
        return .success
    }

    private func configuration(for assembly: ServiceAssembly) throws(ConfigurationError) -> ServiceGroupConfiguration {
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        let announcer = DrainAnnouncer(readiness: context.readiness, logger: logger)
        var configuration = ServiceGroupConfiguration(
            services: [admin] + (levelFile.map { [$0] } ?? []) + assembly.services + [announcer], logger: quiet)
        configuration.maximumGracefulShutdownDuration = try settings.duration(.shutdownDeadline)
        return configuration
    }

    private static func handler(
        _ settings: Settings, level: CurrentLogLevel, sink: LogSink
    ) throws(ConfigurationError) -> @Sendable (_ label: String, _ service: String, _ instance: String) -> LineLogHandler
    {
        let format: LogLine.Format =
            switch try settings.string(.logFormat) {
            case "json": .json
            case "text": .text
            default: sink.isTerminal ? .text : .json
            }
        return { label, service, instance in
            LineLogHandler(
                label: label, level: level, format: format, service: service, instance: instance, sink: sink)
        }
    }
}
