extension ConfigurationKey {
    /// A file of `NAME=VALUE` lines that stands behind the environment.
    package static let configurationFile = ConfigurationKey(
        "HELIOGRAPH_CONFIG", .file, summary: "A file of NAME=VALUE lines; the environment wins over it.")
    /// What this process is called in logs, beside its service.
    package static let instance = ConfigurationKey(
        "HELIOGRAPH_INSTANCE", summary: "This process's name in logs; the host's name when absent.")
    package static let adminHost = ConfigurationKey(
        "HELIOGRAPH_ADMIN_HOST", default: "127.0.0.1",
        summary: "The address that /metrics and /health are served on; 0.0.0.0 in a container.")
    package static let adminPort = ConfigurationKey(
        "HELIOGRAPH_ADMIN_PORT", .port, default: "9400", summary: "The port that /metrics and /health are served on.")
    package static let shutdownDeadline = ConfigurationKey(
        "HELIOGRAPH_SHUTDOWN_DEADLINE", .duration(.seconds(1) ... .seconds(600)), default: "25s",
        summary: "How long work in flight may take to finish after SIGTERM.")
    package static let logLevel = ConfigurationKey(
        "LOG_LEVEL", .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]), default: "info",
        summary: "The least severe level that is logged.")
    package static let logFormat = ConfigurationKey(
        "LOG_FORMAT", .choice(["auto", "json", "text"]), default: "auto",
        summary: "How logs are written to standard error; auto is text on a terminal and JSON lines elsewhere.")

    package static let amqpURL = ConfigurationKey(
        "AMQP_URL", .url(schemes: ["amqp", "amqps"]), required: true, secret: true,
        summary: "The broker: amqp(s)://user:password@host[:port][,host…]/vhost.")
    package static let amqpCAFile = ConfigurationKey(
        "AMQP_CA_FILE", .file, summary: "PEM certificates the broker is trusted by; the system's when absent.")
    package static let databaseURL = ConfigurationKey(
        "DATABASE_URL", .url(schemes: ["postgres", "postgresql"]), required: true, secret: true,
        summary: "The database: postgresql://user:password@host[:port]/database.")
    package static let databasePoolSize = ConfigurationKey(
        "DATABASE_POOL_SIZE", .integer(1...64), default: "4", summary: "Connections to the database.")
    /// Both ``amqp`` and ``postgres`` read it; see ``TransportSecurity``.
    package static let allowPlaintext = ConfigurationKey(
        "HELIOGRAPH_ALLOW_PLAINTEXT", .boolean, default: "no",
        summary: "Whether broker and database may be reached over a network without TLS.")
    package static let apps = ConfigurationKey(
        "HELIOGRAPH_APPS", .file, required: true,
        summary: "The catalog of apps (YAML): provider credentials and bearer keys.")
}

extension [ConfigurationKey] {
    /// What every executable reads.
    package static let process: [ConfigurationKey] = [
        .configurationFile, .instance, .adminHost, .adminPort, .shutdownDeadline, .logLevel, .logFormat,
    ]
    /// What ``ServiceContext/amqp(_:)`` and ``ServiceContext/bus(queues:publishingTo:)`` read.
    package static let amqp: [ConfigurationKey] = [.amqpURL, .amqpCAFile, .allowPlaintext]
    /// What ``ServiceContext/postgres()`` and ``ServiceContext/database(schema:migration:)`` read.
    package static let postgres: [ConfigurationKey] = [.databaseURL, .databasePoolSize, .allowPlaintext]
    /// What ``ServiceContext/apps()`` reads.
    package static let apps: [ConfigurationKey] = [.apps]

    /// Every key that belongs to no single service. All of them may be set for any executable, so that one set of
    /// variables can serve a whole deployment.
    static let common: [ConfigurationKey] = (process + amqp + postgres + apps).unique

    /// Each key once, where it comes first: two groups may share one.
    var unique: [ConfigurationKey] {
        var seen: Set<ConfigurationKey> = []
        return filter { seen.insert($0).inserted }
    }
}
