import PushProtocol

/// Messages that one exchange carries under one form of routing key.
struct BusChannel {
    /// The key in the document.
    var id: String
    var exchange: ExchangeName
    /// The routing key with parameters in braces.
    var address: String
    /// The accepted values of each parameter; empty: any.
    var parameters: [String: [String]] = [:]
    /// The ids of the messages, see ``MessageContract/id``.
    var messages: [String]
    /// Routing keys with ``placeholder`` as the app. They cover all publishers and all queues.
    var samples: [String]
    var about: String

    /// Stands for any configured app.
    static let placeholder = AppID(rawValue: "placeholder-app")!
    /// Stands for a webhook's name.
    static let webhook = WebhookName(rawValue: "placeholder-webhook")!
    /// The consumers of all reports of ``placeholder``.
    static let reports = ReportConsumers(
        upstreams: [placeholder],
        webhooks: [.init(app: placeholder, name: webhook, kinds: Set(ReportKind.allCases))])
    /// Stands for an app that has no queues of its own.
    static let otherApp = AppID(rawValue: "placeholder-other")!

    /// The channels of the input exchanges and of results. Retries and dead letters keep their messages.
    static let all: [BusChannel] = {
        let app = placeholder.rawValue
        let lanes = Lane.allCases.map(\.rawValue)
        let providers = Provider.allCases.map(\.rawValue)
        let origins = Outcomes.Origin.allCases.map(\.rawValue)
        let dispositions = Outcome.Answer.Disposition.allCases.map(\.rawValue)
        let verbs = DeviceCommand.Command.Verb.allCases.map(\.rawValue)
        let changes = DeviceEvent.Change.allCases.map(\.rawValue)
        let stages = BusRole.allCases.filter { $0.writes(.census) }.map(\.rawValue)
        return [
            BusChannel(
                id: "events", exchange: .events, address: "{app}.{eventType}", parameters: ["eventType": []],
                messages: ["domain-event.v1", "direct-notification.v1"],
                samples: [
                    "\(app).thing.happened", "\(otherApp).thing.happened", "\(app).\(SegmentPage.eventType)",
                ],
                about: "Domain events of upstream services, and notifications that they word themselves. Rules copies "
                    + "events for other apps, and the token registry publishes the users of segments."),
            BusChannel(
                id: "notifications", exchange: .notifications, address: "{lane}.{app}", parameters: ["lane": lanes],
                messages: ["notification.v1"], samples: lanes.flatMap { ["\($0).\(app)", "\($0).\(otherApp)"] },
                about: "Decisions of rules to notify."),
            BusChannel(
                id: "revocations", exchange: .notifications, address: "revoked.{app}",
                messages: ["notification-revocation.v1"], samples: [RoutingKey.revocation(placeholder)],
                about: "Notifications that senders must not send any more."),
            BusChannel(
                id: "delivery-reports", exchange: .notifications, address: "event.reported.{app}",
                messages: ["delivery-report.v1"], samples: [ReportKind.delivery.routingKey(of: placeholder)],
                about: "Delivery states for upstream services. Without a queue, the broker drops them."),
            BusChannel(
                id: "receipt-reports", exchange: .notifications, address: "event.receipt.{app}",
                messages: ["receipt-report.v1"], samples: [ReportKind.receipt.routingKey(of: placeholder)],
                about: "Receipts of users for upstream services."),
            BusChannel(
                id: "dead-device-reports", exchange: .devices, address: "report.dead.{app}",
                messages: ["dead-device-report.v1"], samples: [ReportKind.deadDevice.routingKey(of: placeholder)],
                about: "Dead devices for upstream services."),
            BusChannel(
                id: "pushes", exchange: .pushes, address: "{provider}.{lane}.{app}",
                parameters: ["provider": providers, "lane": lanes], messages: ["push.v1", "push.v2"],
                samples: providers.flatMap { provider in lanes.map { "\(provider).\($0).\(app)" } },
                about: "Contents with the devices that receive them."),
            BusChannel(
                id: "outcomes", exchange: .outcomes, address: "{origin}.{disposition}",
                parameters: ["origin": origins, "disposition": dispositions],
                messages: ["outcomes.v1", "outcomes.v2"],
                samples: origins.flatMap { origin in dispositions.map { "\(origin).\($0)" } },
                about: "The providers' answers."),
            BusChannel(
                id: "outcomes-elsewhere", exchange: .outcomes, address: "{origin}.accepted.elsewhere",
                parameters: ["origin": providers], messages: ["outcomes.v1", "outcomes.v2"],
                samples: providers.map { "\($0).accepted.elsewhere" },
                about: "Acceptances in another environment than the push's, or through a FID's fallback token."),
            BusChannel(
                id: "device-commands", exchange: .devices, address: "command.{verb}.{app}",
                parameters: ["verb": verbs], messages: ["device-command.v1"],
                samples: verbs.flatMap { ["command.\($0).\(app)", "command.\($0).\(otherApp)"] },
                about: "Commands to the registry. A backend with a broker user of its own may publish all verbs."),
            BusChannel(
                id: "device-events", exchange: .devices, address: "event.{change}", parameters: ["change": changes],
                messages: ["device-event.v1"], samples: changes.map { "event.\($0)" },
                about: "Changes of registrations. Other services may bind queues."),
            BusChannel(
                id: "campaign-cursors", exchange: .devices, address: RoutingKey.campaignCursor,
                messages: ["campaign-cursor.v1"], samples: [RoutingKey.campaignCursor],
                about: "The positions of campaigns. Only the registry uses them."),
            BusChannel(
                id: "census", exchange: .census, address: "{service}", parameters: ["service": stages],
                messages: ["census-report.v1"], samples: stages,
                about: "What each process settled."),
            BusChannel(
                id: "channel-requests", exchange: .channels, address: "request.{app}",
                messages: ["channel-request.v1"], samples: [RoutingKey.channelRequest(placeholder)],
                about: "Requests to create and delete broadcast channels."),
            BusChannel(
                id: "channel-answers", exchange: .channels, address: "answer.{app}",
                messages: ["channel-answer.v1"], samples: [RoutingKey.channelAnswer(placeholder)],
                about: "The answers to these requests."),
        ]
    }()

    static func parameterDescription(_ name: String) -> String {
        switch name {
        case "app": "The app: \(AppID.rule)."
        case "eventType": "The event's type, as the app's rule file lists it. It has several words."
        case "lane": "The priority: each lane has its own queues."
        case "provider": "The push provider."
        case "origin": "The provider, or the registry."
        case "disposition": "The answer."
        case "verb": "The command's name."
        case "change": "The kind of change."
        case "service": "The service that reports."
        case "webhook": "The name of a webhook of the app."
        default: "The name of a work queue."
        }
    }
}

// MARK: - Users of the broker

extension BusRole {
    /// Whether the role may publish to the exchange at all. `topology` may do everything, and publishes nothing.
    func writes(_ exchange: ExchangeName) -> Bool {
        self != .topology && permissions.write.matchesWhole(exchange.name)
    }

    /// Whether the role may publish with a routing key.
    func publishes(_ routingKey: String, to exchange: ExchangeName) -> Bool {
        guard writes(exchange) else { return false }
        let topics = self == .upstream ? Self.upstreamTopicPermissions(of: BusChannel.placeholder) : topicPermissions
        return topics.filter { $0.exchange == exchange }.allSatisfy { routingKey.containsMatch(of: $0.write) }
    }

    /// Whether the role may consume a queue or stream.
    func reads(_ queue: String) -> Bool {
        let own = self == .upstream ? Self.upstreamPermissions(of: BusChannel.placeholder) : permissions
        return self != .topology && own.read.matchesWhole(queue)
    }
}

extension String {
    /// Whether this regular expression, which has anchors, matches `text`.
    fileprivate func matchesWhole(_ text: String) -> Bool { text.containsMatch(of: self) }

    /// Whether a regular expression matches in this text.
    fileprivate func containsMatch(of expression: String) -> Bool {
        (try? Regex(expression)).map { firstMatch(of: $0) != nil } ?? false
    }
}

// MARK: - Routing

extension Topology {
    /// The queues and streams that a message reaches.
    func queues(of exchange: String, routingKey: String) -> Set<String> {
        let queues = bindings.filter { $0.exchange == exchange && Self.matches(routingKey, $0.routingKey) }
            .map(\.queue)
        let exchanges = exchangeBindings.filter { $0.source == exchange && Self.matches(routingKey, $0.routingKey) }
        var found = Set(queues)
        for binding in exchanges { found.formUnion(self.queues(of: binding.destination, routingKey: routingKey)) }
        if queues.isEmpty, exchanges.isEmpty,
            let alternate = self.exchanges.first(where: { $0.name == exchange })?.alternate
        {
            found.formUnion(self.queues(of: alternate, routingKey: routingKey))
        }
        return found
    }

    /// Whether a routing key matches a topic pattern: `*` is one word, `#` any number of words.
    private static func matches(_ key: String, _ pattern: String) -> Bool {
        func matches(_ words: ArraySlice<Substring>, _ rest: ArraySlice<Substring>) -> Bool {
            switch rest.first {
            case nil: words.isEmpty
            case "#":
                matches(words, rest.dropFirst()) || !words.isEmpty && matches(words.dropFirst(), rest)
            case "*": !words.isEmpty && matches(words.dropFirst(), rest.dropFirst())
            case let word?: words.first == word && matches(words.dropFirst(), rest.dropFirst())
            }
        }
        return matches(key.split(separator: ".")[...], pattern.split(separator: ".")[...])
    }
}
