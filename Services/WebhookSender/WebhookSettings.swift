import Messaging
import ServiceConnections
import ServiceKit

/// The limits of requests, and the time until a failing webhook counts as disabled.
struct WebhookSettings: Sendable {
    static let timeout = ConfigurationKey(
        "WEBHOOK_TIMEOUT", .duration(.milliseconds(100) ... .seconds(60)), default: "10s",
        summary: "The maximum time of a request, with the connect.")
    static let concurrency = ConfigurationKey(
        "WEBHOOK_CONCURRENCY", .integer(1...64), default: "8",
        summary: "The maximum requests in progress to one webhook from this process.")
    static let failureTime = ConfigurationKey(
        "WEBHOOK_FAILURE_TIME", .duration(.seconds(1) ... .seconds(14 * 86_400)), default: "72h",
        summary: "How long a report is sent again; then it is dead-lettered, and its failing webhook disabled.")
    static let probeInterval = ConfigurationKey(
        "WEBHOOK_PROBE_INTERVAL", .duration(.milliseconds(100) ... .seconds(86_400)), default: "15m",
        summary: "How often a disabled webhook gets one report, to see whether it works again.")
    static let caFile = ConfigurationKey(
        "WEBHOOK_CA_FILE", .file,
        summary: "PEM file of trusted CA certificates; the system's trust store when absent.")

    let timeout: Duration
    let concurrency: Int
    let failureTime: Duration
    let probeInterval: Duration
    let caFile: String?
    /// Whether webhooks may go to networks of the operator.
    let privateNetworks: Bool
    /// Whether webhooks on this machine may use `http`.
    let plaintext: Bool

    init(_ settings: Settings) throws(ConfigurationError) {
        timeout = try settings.duration(Self.timeout)
        concurrency = try settings.integer(Self.concurrency)
        failureTime = try settings.duration(Self.failureTime)
        probeInterval = try settings.duration(Self.probeInterval)
        caFile = try settings.optionalString(Self.caFile)
        privateNetworks = try settings.boolean(.webhookPrivateNetworks)
        plaintext = try settings.boolean(.allowPlaintext)
    }

    /// One report a batch, because a batch is settled as a whole. A report's age limits its attempts, not their number.
    var policy: StagePolicy {
        StagePolicy(
            batchSize: 1, batchLinger: .zero, prefetch: UInt16(concurrency * 2), concurrentBatches: concurrency,
            eagerBatches: concurrency, maximumAttempts: .max)
    }
}

extension [ConfigurationKey] {
    static let webhookSender: [ConfigurationKey] =
        .amqp + .apps + [
            WebhookSettings.timeout, WebhookSettings.concurrency, WebhookSettings.failureTime,
            WebhookSettings.probeInterval, WebhookSettings.caFile, .webhookPrivateNetworks,
        ]
}
