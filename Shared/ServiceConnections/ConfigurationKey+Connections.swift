package import ServiceKit

extension ConfigurationKey {
    package static let amqpURL = ConfigurationKey(
        "AMQP_URL", .url(schemes: ["amqp", "amqps"]), required: true, secret: true,
        summary: "The broker: amqp(s)://user:password@host[:port][,host…]/vhost.",
        check: TransportSecurity.brokerProblem)
    package static let amqpCAFile = ConfigurationKey(
        "AMQP_CA_FILE", .file, summary: "PEM certificates to verify the broker with; the system's when absent.")
    package static let databaseURL = ConfigurationKey(
        "DATABASE_URL", .url(schemes: ["postgres", "postgresql"]), required: true, secret: true,
        summary: "The database: postgresql://user:password@host[:port]/database.",
        check: TransportSecurity.databaseProblem)
    package static let databasePoolSize = ConfigurationKey(
        "DATABASE_POOL_SIZE", .integer(1...64), default: "4", summary: "The maximum number of database connections.")
    /// See ``PostgresStatementMode``.
    package static let databaseStatements = ConfigurationKey(
        "DATABASE_STATEMENTS", .choice(["prepared", "unnamed"]), default: "prepared",
        summary: "Whether statements are prepared. unnamed is for a pooler in transaction mode, such as PgBouncer.")
    /// See ``TransportSecurity``.
    package static let allowPlaintext = ConfigurationKey(
        "HELIOGRAPH_ALLOW_PLAINTEXT", .boolean, default: "no",
        summary: "Whether connections to broker and database may use a network without TLS.")
}

extension [ConfigurationKey] {
    /// The keys of ``ServiceContext/amqp(_:)``.
    package static let brokerConnection: [ConfigurationKey] = [.amqpURL, .amqpCAFile, .allowPlaintext]
    /// The keys of ``ServiceContext/bus(queues:publishingTo:)``, which traces too.
    package static let amqp: [ConfigurationKey] = .brokerConnection + .tracing
    /// The keys of ``ServiceContext/postgres()`` and ``ServiceContext/database(schema:migration:)``.
    package static let postgres: [ConfigurationKey] = [
        .databaseURL, .databasePoolSize, .databaseStatements, .allowPlaintext,
    ]
}
