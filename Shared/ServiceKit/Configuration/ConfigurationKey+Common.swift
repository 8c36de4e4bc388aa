extension ConfigurationKey {
    package static let configurationFile = ConfigurationKey(
        "HELIOGRAPH_CONFIG", .file, summary: "A file of NAME=VALUE lines; environment variables take precedence.")
    /// The process's name in logs, next to its service.
    package static let instance = ConfigurationKey(
        "HELIOGRAPH_INSTANCE", summary: "This process's name in logs; the host's name when absent.")
    package static let adminHost = ConfigurationKey(
        "HELIOGRAPH_ADMIN_HOST", default: "127.0.0.1",
        summary: "The address that /metrics and /health are served on; 0.0.0.0 in a container.")
    package static let adminPort = ConfigurationKey(
        "HELIOGRAPH_ADMIN_PORT", .port, default: "9400", summary: "The port that /metrics and /health are served on.")
    package static let shutdownDeadline = ConfigurationKey(
        "HELIOGRAPH_SHUTDOWN_DEADLINE", .duration(.seconds(1) ... .seconds(600)), default: "25s",
        summary: "The longest time for running work to finish after SIGTERM.")
    package static let logLevel = ConfigurationKey(
        "LOG_LEVEL", .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]), default: "info",
        summary: "The lowest level that is logged.")
    package static let logLevelFile = ConfigurationKey(
        "LOG_LEVEL_FILE", .file,
        summary: "A file with the lowest level that is logged, read again every 5 s; takes precedence over LOG_LEVEL.")
    package static let logFormat = ConfigurationKey(
        "LOG_FORMAT", .choice(["auto", "json", "text"]), default: "auto",
        summary: "The format of logs on standard error; auto is text on a terminal and JSON lines otherwise.")
    package static let apps = ConfigurationKey(
        "HELIOGRAPH_APPS", .file, required: true,
        summary: "The catalog of apps (YAML): provider credentials and bearer keys.")
    /// Whether webhooks may go to networks of the operator.
    package static let webhookPrivateNetworks = ConfigurationKey(
        "HELIOGRAPH_WEBHOOK_PRIVATE_NETWORKS", .boolean, default: "no",
        summary: "Whether webhooks may go to loopback, private and shared addresses.")
    /// Whether browsers may register push services in networks of the operator, and pushes may go there.
    package static let webPushPrivateNetworks = ConfigurationKey(
        "HELIOGRAPH_WEBPUSH_PRIVATE_NETWORKS", .boolean, default: "no",
        summary: "Whether Web Push may go to loopback, private and shared addresses, for tests.")
}

extension [ConfigurationKey] {
    /// The keys of every executable.
    package static let process: [ConfigurationKey] = [
        .configurationFile, .instance, .adminHost, .adminPort, .shutdownDeadline, .logLevel, .logLevelFile,
        .logFormat,
    ]
    /// The keys of ``ServiceContext/apps()``.
    package static let apps: [ConfigurationKey] = [.apps]

    /// The names that every executable accepts besides its own, so that one file of settings serves all executables. They
    /// include those of ServiceConnections.
    package static let sharedNames: Set<String> = (process + apps).acceptedNames.union([
        "AMQP_URL", "AMQP_URL_FILE", "AMQP_CA_FILE", "DATABASE_URL", "DATABASE_URL_FILE", "DATABASE_POOL_SIZE",
        "DATABASE_STATEMENTS", "HELIOGRAPH_ALLOW_PLAINTEXT", "HELIOGRAPH_WEBHOOK_PRIVATE_NETWORKS",
        "HELIOGRAPH_WEBPUSH_PRIVATE_NETWORKS", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS_FILE", "OTEL_EXPORTER_OTLP_CERTIFICATE",
        "OTEL_TRACES_SAMPLER_ARG", "OTEL_SERVICE_NAME",
    ])

    /// The names of the keys, and of the files of the secret ones.
    package var acceptedNames: Set<String> { Set(flatMap { $0.isSecret ? [$0.name, $0.fileName] : [$0.name] }) }

    /// The keys without duplicates, in order of first occurrence.
    var unique: [ConfigurationKey] {
        var seen: Set<ConfigurationKey> = []
        return filter { seen.insert($0).inserted }
    }
}
