import HTTPAuth
import ServiceConnections
import ServiceKit

extension ConfigurationKey {
    static let eventsHost = ConfigurationKey(
        "EVENTS_API_HOST", default: "127.0.0.1",
        summary: "The address that events are accepted on; 0.0.0.0 in a container.")
    static let eventsPort = ConfigurationKey(
        "EVENTS_API_PORT", .port, default: "8082", summary: "The port that events are accepted on.")
    static let eventsKeyEvents = ConfigurationKey(
        "EVENTS_API_KEY_EVENTS", .integer(0...100_000_000), default: "60000",
        summary: "The maximum events per minute of one API key or bearer token; 0 for no limit.")
    static let eventsBatchBytes = ConfigurationKey(
        "EVENTS_API_BATCH_BYTES", .integer(262_144...67_108_864), default: "8388608",
        summary: "The maximum size of a batch in bytes. A single event may have 262144.")
    static let eventsRequestBytes = ConfigurationKey(
        "EVENTS_API_REQUEST_BYTES", .integer(1_048_576...8_589_934_592), default: "16777216",
        summary: "The maximum size of all request bodies in progress in bytes; further requests get 503.")
    static let eventsConfirmTime = ConfigurationKey(
        "EVENTS_API_CONFIRM_TIME", .duration(.milliseconds(100)...(.seconds(60))), default: "10s",
        summary: "How long to wait for the broker's confirm; then the request gets 503.")
    static let eventsMatrixKey = ConfigurationKey(
        "EVENTS_API_MATRIX_KEY", .longSecret(bytes: 32), secret: true,
        summary: "The key of the pushkeys of Matrix clients; without it, the Matrix push gateway is off.")
    static let eventsCAFile = ConfigurationKey(
        "EVENTS_API_CA_FILE", .file,
        summary: "PEM file of CA certificates for JWK set URLs; the system's trust store when absent.")
}

extension [ConfigurationKey] {
    static let eventsAPI: [ConfigurationKey] =
        .amqp + .postgres + .apps + [
            .eventsHost, .eventsPort, .eventsKeyEvents, .eventsBatchBytes, .eventsRequestBytes, .eventsConfirmTime,
            .eventsMatrixKey, .eventsCAFile, .bearerLifetime,
        ]
}
