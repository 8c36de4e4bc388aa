/// The kinds of reports that an upstream service can get back about its app.
package enum ReportKind: String, Hashable, Sendable, CaseIterable {
    /// The delivery state of a notification. Published by rules, for rules of the app with `report`.
    case delivery
    /// A user opened or dismissed a notification. Published by rules.
    case receipt
    /// A device that gets no pushes any more, because its provider reported or dropped its token. Published by the
    /// registry.
    case deadDevice = "dead-device"

    /// The type of its CloudEvents.
    package var eventType: String {
        switch self {
        case .delivery: "heliograph.notification.reported"
        case .receipt: "heliograph.receipt.recorded"
        case .deadDevice: "heliograph.device.deactivated"
        }
    }

    package init?(eventType: String) {
        guard let kind = ReportKind.allCases.first(where: { $0.eventType == eventType }) else { return nil }
        self = kind
    }

    package var exchange: ExchangeName {
        switch self {
        case .delivery, .receipt: .notifications
        case .deadDevice: .devices
        }
    }

    package func routingKey(of app: AppID) -> String { "\(keyPrefix).\(app.rawValue)" }

    /// The words of the routing key before the app.
    package var keyPrefix: String {
        switch self {
        case .delivery: "event.reported"
        case .receipt: "event.receipt"
        // Not `event.…`: consumers of device events may bind `event.#`.
        case .deadDevice: "report.dead"
        }
    }
}

/// The name of a webhook, unique within its app: a word of a queue's name, a metric label.
package struct WebhookName: ValidatedString {
    package static let rule = "a webhook's name is 1–32 characters of a–z, 0–9 and '-', not starting with '-'"

    package let rawValue: String

    package init?(rawValue: String) {
        guard rawValue.utf8.count <= 32, AppID(rawValue: rawValue) != nil else { return nil }
        self.rawValue = rawValue
    }
}

/// The apps whose reports have a queue: one that the upstream reads, and one for each webhook.
package struct ReportConsumers: Hashable, Sendable {
    package struct Webhook: Hashable, Sendable {
        package let app: AppID
        package let name: WebhookName
        package let kinds: Set<ReportKind>

        package init(app: AppID, name: WebhookName, kinds: Set<ReportKind>) {
            self.app = app
            self.name = name
            self.kinds = kinds
        }

        package var queue: WorkQueue { .webhookReports(app, name) }
    }

    /// The apps with a queue for their upstream.
    package let upstreams: [AppID]
    package let webhooks: [Webhook]

    package static let none = ReportConsumers()

    package init(upstreams: [AppID] = [], webhooks: [Webhook] = []) {
        self.upstreams = upstreams.sorted()
        self.webhooks = webhooks.sorted { ($0.app, $0.name) < ($1.app, $1.name) }
    }
}

/// The queue of an app's reports that its upstream reads. The upstream is not a stage: the queue has neither retries
/// nor dead letters.
package enum UpstreamQueue {
    /// The maximum number of reports; the broker then drops the oldest.
    package static let maximumLength: Int64 = 100_000
    /// How long a report waits; the broker then drops it.
    package static let retention = Duration.seconds(7 * 86_400)

    package static func name(of app: AppID) -> String { "upstream.reports.\(app.rawValue)" }
}

extension Topology {
    /// The queues of upstreams, and the bindings of all reports.
    mutating func addReports(to consumers: ReportConsumers, apps: [AppID]) {
        for app in consumers.upstreams {
            let name = UpstreamQueue.name(of: app)
            queues.append(Queue(upstream: name))
            bindings += ReportKind.allCases.map { Binding($0, of: app, queue: name) }
        }
        for webhook in consumers.webhooks {
            let all = ReportKind.allCases.map { ($0, Binding($0, of: webhook.app, queue: webhook.queue.name)) }
            bindings += all.filter { webhook.kinds.contains($0.0) }.map(\.1)
            // Of an earlier apps file.
            retired += all.filter { !webhook.kinds.contains($0.0) }.map(\.1)
        }
        // An app that no longer asks for reports: its queue gets no further ones.
        for app in apps where !consumers.upstreams.contains(app) {
            retired += ReportKind.allCases.map { Binding($0, of: app, queue: UpstreamQueue.name(of: app)) }
        }
    }
}

extension Topology.Binding {
    fileprivate init(_ kind: ReportKind, of app: AppID, queue: String) {
        self.init(exchange: kind.exchange.name, queue: queue, routingKey: kind.routingKey(of: app))
    }
}

extension Topology.Queue {
    /// Limited by number and age, so that an upstream that does not read fills nothing.
    fileprivate init(upstream name: String) {
        self.init(
            name: name,
            arguments: [
                "x-queue-type": .text("quorum"), "x-overflow": .text("drop-head"),
                "x-max-length": .number(UpstreamQueue.maximumLength),
                "x-message-ttl": .number(UpstreamQueue.retention.wholeMilliseconds),
            ])
    }
}
