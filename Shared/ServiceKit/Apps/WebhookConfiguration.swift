package import Primitives
package import PushProtocol

/// An endpoint of an app that gets reports over HTTPS.
package struct WebhookConfiguration: Hashable, Sendable {
    package let name: WebhookName
    package let url: OutboundURL
    /// The path of the file with the signing secrets, one a line.
    package let secretFile: String
    package let kinds: Set<ReportKind>

    package init(
        name: WebhookName, url: OutboundURL, secretFile: String, kinds: Set<ReportKind> = Set(ReportKind.allCases)
    ) {
        self.name = name
        self.url = url
        self.secretFile = secretFile
        self.kinds = kinds
    }
}

extension AppConfiguration {
    /// Whether a queue or a webhook of the app gets reports of this kind.
    package func wants(_ kind: ReportKind) -> Bool { hasReportQueue || webhooks.contains { $0.kinds.contains(kind) } }
}

extension AppCatalog {
    /// The apps whose reports have a queue.
    package var reportConsumers: ReportConsumers {
        ReportConsumers(
            upstreams: apps.filter(\.hasReportQueue).map(\.id), webhooks: apps.flatMap(\.reportWebhooks))
    }

    /// The topology of the bus for these apps.
    package var topology: Topology { Topology(apps: ids, reports: reportConsumers) }

    /// The work queues of the bus for these apps.
    package var workQueues: [WorkQueue] { WorkQueue.all(apps: ids, reports: reportConsumers) }
}

extension AppConfiguration {
    /// The app's webhooks, as consumers of reports.
    package var reportWebhooks: [ReportConsumers.Webhook] {
        webhooks.map { ReportConsumers.Webhook(app: id, name: $0.name, kinds: $0.kinds) }
    }
}

extension YAMLReader {
    mutating func reportQueue(_ entry: LocatedNode) -> Bool {
        let members = members(of: entry, known: ["queue"], required: ["queue"])
        guard let text = text(members["queue"]), let queue = members["queue"] else { return false }
        if !["true", "false"].contains(text) { report(queue, "“\(text)” is not true or false") }
        return text == "true"
    }

    mutating func webhooks(_ entry: LocatedNode) -> [WebhookConfiguration] {
        var webhooks: [WebhookConfiguration] = []
        for element in elements(of: entry) {
            guard let webhook = webhook(element) else { continue }
            if webhooks.contains(where: { $0.name == webhook.name }) {
                report(element, "the app has another webhook “\(webhook.name)”; choose another name")
            }
            webhooks.append(webhook)
        }
        return webhooks
    }

    private mutating func webhook(_ entry: LocatedNode) -> WebhookConfiguration? {
        let members = members(
            of: entry, known: ["name", "url", "secret-file", "events"], required: ["name", "url", "secret-file"])
        let name = webhookName(members["name"])
        let url = outboundURL(members["url"])
        let secretFile = file(members["secret-file"], for: .webhooks)
        var kinds = Set(ReportKind.allCases)
        if let events = members["events"] {
            let named = elements(of: events)
            if named.isEmpty { report(events, "names no event; leave it out for all") }
            kinds = Set(named.compactMap { choice($0, of: ReportKind.allCases) })
        }
        guard let name, let url, let secretFile else { return nil }
        return WebhookConfiguration(name: name, url: url, secretFile: secretFile, kinds: kinds)
    }

    private mutating func webhookName(_ entry: LocatedNode?) -> WebhookName? {
        guard let entry, let text = text(entry) else { return nil }
        if let name = WebhookName(rawValue: text) { return name }
        report(entry, WebhookName.rule)
        return nil
    }

    /// Checks the form only. Whether private networks are allowed is a setting of webhook-sender.
    private mutating func outboundURL(_ entry: LocatedNode?) -> OutboundURL? {
        guard let entry, let text = text(entry) else { return nil }
        do throws(OutboundURL.Refusal) {
            return try OutboundURL(text)
        } catch {
            // The URL may hold a secret.
            report(entry, "the URL is refused: \(error)")
            return nil
        }
    }
}
