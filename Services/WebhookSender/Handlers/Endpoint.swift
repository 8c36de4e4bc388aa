import FoundationEssentials
import HTTPSFetch
import Logging
import Metrics
import Primitives
import PushProtocol
import ServiceKit
import Synchronization

/// A webhook with its secrets and its state.
final class Endpoint: Sendable {
    let app: AppID
    let configuration: WebhookConfiguration
    /// The reason for which nothing is sent to the URL.
    let refusal: OutboundURL.Refusal?
    private let secrets: SecretFile
    private let fetch: HTTPSFetch
    private let state: Mutex<EndpointState>
    private let logger: Logger

    init(
        _ configuration: WebhookConfiguration, of app: AppID, settings: WebhookSettings, fetch: HTTPSFetch,
        logger: Logger
    ) throws(ConfigurationError) {
        self.app = app
        self.configuration = configuration
        self.fetch = fetch
        refusal = configuration.url.refusal(
            privateNetworks: settings.privateNetworks, plaintext: settings.plaintext)
        secrets = try SecretFile(configuration.secretFile, logger: logger)
        state = Mutex(EndpointState(probeInterval: settings.probeInterval))
        var logger = logger
        logger[metadataKey: LogKey.app] = "\(app)"
        logger[metadataKey: "webhook"] = "\(configuration.name)"
        self.logger = logger
        if let refusal {
            logger.error(
                "Webhook refused; its reports are dead-lettered. Correct its URL in the apps file",
                metadata: [LogKey.reason: "\(refusal)"])
        }
    }

    /// The problem to show in `/health/ready`.
    var problem: String? {
        let problem = refusal?.description ?? state.withLock(\.disabledBecause)
        return problem.map { "the webhook \(configuration.name) of \(app) gets no reports: \($0)" }
    }

    func permission(at now: Timestamp) -> EndpointState.Permission { state.withLock { $0.permission(at: now) } }

    /// Sends one report.
    func send(id: UUID, body: [UInt8], at now: Timestamp) async -> RequestResult {
        let start = ContinuousClock.now
        let result = await request(id: id, body: body, at: now)
        Timer(
            label: "heliograph_webhook_sender_request_seconds", dimensions: [("app", app.rawValue)],
            preferredDisplayUnit: .seconds
        ).record(duration: start.duration(to: .now))
        return result
    }

    private func request(id: UUID, body: [UInt8], at now: Timestamp) async -> RequestResult {
        if let refusal { return .refused("\(refusal)") }
        let request = FetchRequest(
            method: "POST", url: configuration.url.text,
            headers: SignedRequest.headers(id: id, body: body, secrets: secrets.current(), at: now), body: body)
        do throws(FetchError) {
            let response = try await fetch.send(request)
            return RequestResult(status: response.status, retryAfter: response["retry-after"])
        } catch {
            // The error has no path and no query of the URL.
            switch error.code {
            case .addressRefused, .invalidRequest, .invalidConfiguration: return .refused("\(error)")
            case .unreachable, .untrusted, .timedOut, .responseTooLarge, .broken, .cancelled:
                return .unavailable("\(error)", retryAfter: nil)
            }
        }
    }

    /// Records a result, and logs when the webhook is disabled or enabled.
    func record(_ result: RequestResult, firstSeen: Timestamp, isLast: Bool, at now: Timestamp) {
        let (before, after) = state.withLock { state in
            let before = state.disabledBecause
            state.record(result, firstSeen: firstSeen, isLast: isLast, at: now)
            return (before, state.disabledBecause)
        }
        let labels = [("app", app.rawValue), ("webhook", configuration.name.rawValue)]
        Counter(label: "heliograph_webhook_sender_requests_total", dimensions: labels + [("result", result.label)])
            .increment()
        guard before != after else { return }
        Gauge(label: "heliograph_webhook_sender_disabled", dimensions: labels).record(after == nil ? 0 : 1)
        if let after {
            logger.error(
                "Webhook disabled; its reports are dead-lettered, except one probe in each interval",
                metadata: [LogKey.reason: "\(after)"])
        } else {
            logger.notice("Webhook works again; sending its reports. Replay its dead letters with pushctl dead")
        }
    }
}

/// The webhooks of all apps, by their queues.
final class Endpoints: Sendable {
    /// The most problems in one reason of `/health/ready`.
    private static let namedProblems = 5

    private let settings: WebhookSettings
    private let fetch: HTTPSFetch
    private let logger: Logger
    private let endpoints = Mutex<[WorkQueue: Endpoint]>([:])

    init(settings: WebhookSettings, logger: Logger) {
        self.settings = settings
        self.logger = logger
        let privateNetworks = settings.privateNetworks
        fetch = HTTPSFetch(
            caFile: settings.caFile, connectTimeout: settings.timeout, timeout: settings.timeout,
            maximumResponseSize: 64 * 1024, keepsBody: false, connectionsPerHost: 0,
            mayConnect: { AddressClass($0).isAllowed(privateNetworks: privateNetworks) })
    }

    /// Adds the webhooks of an app.
    ///
    /// - Throws: if a file of secrets is invalid. Then no webhook of the app is added.
    func add(_ app: AppConfiguration) throws(ConfigurationError) {
        var new: [WorkQueue: Endpoint] = [:]
        for webhook in app.webhooks {
            new[.webhookReports(app.id, webhook.name)] = try Endpoint(
                webhook, of: app.id, settings: settings, fetch: fetch, logger: logger)
        }
        let added = new
        endpoints.withLock { $0.merge(added) { $1 } }
    }

    subscript(queue: WorkQueue) -> Endpoint? { endpoints.withLock { $0[queue] } }

    /// Degraded while a webhook gets no reports.
    var condition: Readiness.State {
        let problems = endpoints.withLock { Array($0.values) }.compactMap(\.problem).sorted()
        guard !problems.isEmpty else { return .holds }
        let named = problems.prefix(Self.namedProblems).joined(separator: "; ")
        let rest = problems.count - Self.namedProblems
        return .degraded(rest > 0 ? "\(named); and \(rest) more" : named)
    }
}
