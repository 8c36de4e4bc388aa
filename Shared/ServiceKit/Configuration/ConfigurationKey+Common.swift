extension ConfigurationKey {
    /// A file of `NAME=VALUE` lines; environment variables take precedence.
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
    package static let logFormat = ConfigurationKey(
        "LOG_FORMAT", .choice(["auto", "json", "text"]), default: "auto",
        summary: "The format of logs on standard error; auto is text on a terminal and JSON lines otherwise.")

    package static let amqpURL = ConfigurationKey(
        "AMQP_URL", .url(schemes: ["amqp", "amqps"]), required: true, secret: true,
        summary: "The broker: amqp(s)://user:password@host[:port][,host…]/vhost.")
    package static let amqpCAFile = ConfigurationKey(
        "AMQP_CA_FILE", .file, summary: "PEM certificates to verify the broker with; the system's when absent.")
    package static let databaseURL = ConfigurationKey(
        "DATABASE_URL", .url(schemes: ["postgres", "postgresql"]), required: true, secret: true,
        summary: "The database: postgresql://user:password@host[:port]/database.")
    package static let databasePoolSize = ConfigurationKey(
        "DATABASE_POOL_SIZE", .integer(1...64), default: "4", summary: "The maximum number of database connections.")
    /// Read by ``amqp`` and ``postgres``; see ``TransportSecurity``.
    package static let allowPlaintext = ConfigurationKey(
        "HELIOGRAPH_ALLOW_PLAINTEXT", .boolean, default: "no",
        summary: "Whether connections to broker and database may use a network without TLS.")
    package static let apps = ConfigurationKey(
        "HELIOGRAPH_APPS", .file, required: true,
        summary: "The catalog of apps (YAML): provider credentials and bearer keys.")
}

extension [ConfigurationKey] {
    /// The keys of every executable.
    package static let process: [ConfigurationKey] = [
        .configurationFile, .instance, .adminHost, .adminPort, .shutdownDeadline, .logLevel, .logFormat,
    ]
    /// The keys of ``ServiceContext/amqp(_:)`` and ``ServiceContext/bus(queues:publishingTo:)``.
    package static let amqp: [ConfigurationKey] = [.amqpURL, .amqpCAFile, .allowPlaintext]
    /// The keys of ``ServiceContext/postgres()`` and ``ServiceContext/database(schema:migration:)``.
    package static let postgres: [ConfigurationKey] = [.databaseURL, .databasePoolSize, .allowPlaintext]
    /// The keys of ``ServiceContext/apps()``.
    package static let apps: [ConfigurationKey] = [.apps]

    /// All keys that belong to no single service. Any executable accepts them, so a deployment can share one set of
    /// variables.
    static let common: [ConfigurationKey] = (process + amqp + postgres + apps).unique

    /// The keys without duplicates, in order of first occurrence.
    var unique: [ConfigurationKey] {
        var seen: Set<ConfigurationKey> = []
        return filter { seen.insert($0).inserted }
    }
}
