package import PushProtocol

/// The AsyncAPI 3.0 document of the bus, made from the topology and from the permissions of the broker's users.
///
/// A channel is an exchange with a form of routing key, or a queue. An operation belongs to one user of the broker:
/// the extension `x-heliograph-user` names it.
package struct AsyncAPIDocument {
    /// The folder of the schemas, relative to the document.
    package static let schemaFolder = "schemas"

    /// The apps; empty: any app.
    private let apps: [AppID]
    private let release: String
    /// The user whose operations are listed; `nil`: all.
    private let user: BusRole?
    private let topology = Topology(apps: [BusChannel.placeholder], reports: BusChannel.reports)

    /// - Parameters:
    ///   - apps: the values of the parameter `app`; empty: any.
    ///   - user: lists only this user's operations, with their channels; `nil`: all.
    package init(release: String, apps: [AppID] = [], user: BusRole? = nil) {
        self.release = release
        self.apps = apps
        self.user = user
    }

    package var json: JSONValue {
        let operations = operations
        let used = Set(operations.values.compactMap { $0["channel"]?["$ref"]?.string })
        let channels = channels.filter { user == nil || used.contains("#/channels/\($0.key)") }
        let names = Set(channels.values.flatMap { $0["messages"]?.object.map { Array($0.keys) } ?? [] })
        return [
            "asyncapi": "3.0.0",
            "info": [
                "title": "Heliograph: the bus", "version": .string(release),
                "description":
                    "The messages between Heliograph's services, over RabbitMQ. In queue names and routing keys, {app} is a configured app. Made by “pushctl contracts asyncapi”.",
                "license": ["name": "Apache-2.0"],
            ],
            "defaultContentType": "application/json",
            "servers": [
                "broker": [
                    "host": "broker.example:5671", "protocol": "amqps", "protocolVersion": "0-9-1",
                    "description": "RabbitMQ. Each user has only the permissions of its operations.",
                    "security": [["$ref": "#/components/securitySchemes/password"]],
                ]
            ],
            "channels": .object(channels),
            "operations": .object(operations),
            "components": [
                "securitySchemes": [
                    "password": ["type": "userPassword", "description": "A user of the broker for each service."]
                ],
                "messages": .object(
                    Dictionary(
                        MessageContract.all.filter { names.contains($0.id) }.map { ($0.id, Self.message($0)) }
                    ) { first, _ in first }
                    .merging(names.contains(Self.mark) ? [Self.mark: Self.markMessage] : [:]) { first, _ in first }),
            ],
        ]
    }
}

// MARK: - Channels

extension AsyncAPIDocument {
    /// The marker of a stream's end.
    private static let mark = "mark"

    private var channels: [String: JSONValue] {
        var channels: [String: JSONValue] = [:]
        for channel in BusChannel.all {
            channels[channel.id] = self.channel(
                address: channel.address, about: channel.about, messages: channel.messages,
                parameters: channel.parameters, binding: exchangeBinding(channel.exchange.name))
        }
        // Retries and dead letters go through exchanges whose routing key is the name of the work queue.
        let work = Set(topology.queues.map(\.name)).filter { topology.deadLetterQueue(of: $0) != nil }
        let all = Array(Set(work.flatMap { messages(in: $0) })).sorted()
        for exchange in topology.exchanges where Self.isInternal(exchange.name) {
            let isMark = exchange.name == ExchangeName.marks.name
            channels[Self.id(exchange: exchange.name)] = channel(
                address: "{queue}", about: Self.purpose(of: exchange), messages: isMark ? [Self.mark] : all,
                parameters: ["queue": []], binding: exchangeBinding(exchange.name))
        }
        for queue in topology.queues {
            let name = Self.general(queue.name)
            channels[Self.id(queue.name)] = channel(
                address: name, about: Self.purpose(of: queue, work.contains(queue.name)),
                messages: messages(in: queue.name).sorted(),
                parameters: name.contains("{webhook}") ? ["webhook": []] : [:],
                binding: Self.queueBinding(queue, name)
            ).merging([
                "x-heliograph-arguments": .object(queue.arguments.mapValues(\.json)),
                "x-heliograph-bindings": .array(bindings(of: queue.name)),
            ])
        }
        return channels
    }

    private func channel(
        address: String, about: String, messages: [String], parameters: [String: [String]], binding: JSONValue
    ) -> JSONValue {
        var described: [String: JSONValue] = [:]
        for (name, values) in parameters {
            described[name] = ["description": .string(BusChannel.parameterDescription(name))]
            if !values.isEmpty {
                described[name] = described[name]?.merging(["enum": .array(values.map(JSONValue.string))])
            }
        }
        if address.contains("{app}") {
            described["app"] = ["description": .string(BusChannel.parameterDescription("app"))]
            if !apps.isEmpty {
                described["app"] = described["app"]?.merging(["enum": .array(apps.map { .string($0.rawValue) })])
            }
        }
        var channel: [String: JSONValue] = [
            "address": .string(address), "description": .string(about), "bindings": ["amqp": binding],
            "messages": .object(
                Dictionary(messages.map { ($0, ["$ref": .string("#/components/messages/\($0)")]) }) { first, _ in first
                }
            ),
        ]
        if !described.isEmpty { channel["parameters"] = .object(described) }
        return .object(channel)
    }

    private func exchangeBinding(_ name: String) -> JSONValue {
        let kind = topology.exchanges.first { $0.name == name }?.kind ?? .topic
        return [
            "is": "routingKey", "bindingVersion": "0.3.0",
            "exchange": [
                "name": .string(name), "type": .string(kind.rawValue), "durable": true, "autoDelete": false,
            ],
        ]
    }

    private static func queueBinding(_ queue: Topology.Queue, _ name: String) -> JSONValue {
        [
            "is": "queue", "bindingVersion": "0.3.0",
            "queue": ["name": .string(name), "durable": true, "exclusive": false, "autoDelete": false],
        ]
    }

    private func bindings(of queue: String) -> [JSONValue] {
        topology.bindings.filter { $0.queue == queue }.map {
            ["exchange": .string($0.exchange), "routingKey": .string(Self.general($0.routingKey))]
        }
    }

    /// Whether only retries, dead letters, marks or the distribution by app use the exchange.
    private static func isInternal(_ exchange: String) -> Bool {
        !BusChannel.all.contains { $0.exchange.name == exchange }
    }

    private static func purpose(of exchange: Topology.Exchange) -> String {
        switch exchange.name {
        case ExchangeName.dead.name: "Dead letters, by the name of their work queue."
        case ExchangeName.return.name: "Expired retries, which return to their work queue."
        case ExchangeName.marks.name: "Markers that show a stream's end to its readers."
        case let name where name.hasSuffix(".by-app"):
            "Messages by app. Only the broker publishes here. Messages of other apps go to "
                + "\(exchange.alternate ?? "no exchange")."
        case let name where name.hasSuffix(".other-apps"):
            "Messages of apps without a queue of their own. Only the broker publishes here."
        default: "Messages that wait before they are handled again, by the name of their work queue."
        }
    }

    private static func purpose(of queue: Topology.Queue, _ isWork: Bool) -> String {
        if isWork { return "A work queue." }
        if queue.name.hasSuffix(".dead") { return "The dead letters of a work queue." }
        if queue.arguments["x-max-length"] != nil {
            return
                "An app's reports, for its upstream. The broker drops the oldest beyond the limits of number and age."
        }
        if queue.arguments["x-message-ttl"] != nil { return "Messages that wait before they are handled again." }
        return "A stream. Each process reads all of it."
    }

    /// The ids of the messages that reach a queue.
    private func messages(in queue: String) -> Set<String> {
        if let level = topology.bindings.first(where: { $0.queue == queue })?.exchange, level.hasPrefix("retry.") {
            return topology.workQueues.reduce(into: []) { $0.formUnion(messages(in: $1)) }
        }
        let source = topology.workQueue(of: queue) ?? queue
        let found = BusChannel.all.filter { channel in
            channel.samples.contains {
                topology.queues(of: channel.exchange.name, routingKey: $0).contains(source)
            }
        }
        let marks = topology.queues(of: ExchangeName.marks.name, routingKey: queue).contains(queue)
        return Set(found.flatMap(\.messages)).union(marks ? [Self.mark] : [])
    }

    /// A name with `{app}` for the app.
    private static func general(_ name: String) -> String { name.withoutPlaceholder }

    /// The key of an internal exchange. A queue may have the same name.
    private static func id(exchange: String) -> String { "exchange-\(id(exchange))" }

    /// A name as a key of the document.
    private static func id(_ name: String) -> String {
        name.replacing(".\(BusChannel.webhook.rawValue)", with: "")
            .replacing(".app.\(BusChannel.placeholder.rawValue)", with: ".app")
            .replacing(".\(BusChannel.placeholder.rawValue)", with: ".app").replacing(".", with: "-")
    }
}

// MARK: - Operations

extension AsyncAPIDocument {
    private var operations: [String: JSONValue] {
        var operations: [String: JSONValue] = [:]
        for role in BusRole.allCases where user == nil || role == user {
            for channel in BusChannel.all {
                let keys = channel.samples.filter { role.publishes($0, to: channel.exchange) }
                guard !keys.isEmpty else { continue }
                operations["\(role.rawValue)-send-\(channel.id)"] = operation(
                    "send", role, channel.id, "Publishes to the exchange \(channel.exchange.name).",
                    keys: keys.count == channel.samples.count ? nil : role.topicPermission(on: channel.exchange))
            }
            for exchange in topology.exchanges where Self.isInternal(exchange.name) {
                guard let name = ExchangeName.named(exchange.name), role.writes(name) else { continue }
                operations["\(role.rawValue)-send-\(Self.id(exchange: exchange.name))"] = operation(
                    "send", role, Self.id(exchange: exchange.name), "Publishes to the exchange \(exchange.name).",
                    keys: role.topicPermission(on: name))
            }
            for queue in topology.queues where role.reads(queue.name) {
                operations["\(role.rawValue)-receive-\(Self.id(queue.name))"] = operation(
                    "receive", role, Self.id(queue.name), "Consumes \(Self.general(queue.name)).", keys: nil)
            }
        }
        return operations
    }

    private func operation(
        _ action: String, _ role: BusRole, _ channel: String, _ summary: String, keys: String?
    ) -> JSONValue {
        var operation: [String: JSONValue] = [
            "action": .string(action), "channel": ["$ref": .string("#/channels/\(channel)")],
            "summary": .string(summary), "tags": [["name": .string(role.rawValue)]],
            "x-heliograph-user": .string(role.rawValue),
            "bindings": [
                "amqp": action == "send"
                    ? ["deliveryMode": 2, "bindingVersion": "0.3.0"] : ["ack": true, "bindingVersion": "0.3.0"]
            ],
        ]
        operation["x-heliograph-routing-keys"] = keys.map(JSONValue.string)
        return .object(operation)
    }
}

extension BusRole {
    /// The routing keys that the role may publish with, as a regular expression.
    fileprivate func topicPermission(on exchange: ExchangeName) -> String? {
        let topics = self == .upstream ? Self.upstreamTopicPermissions(of: BusChannel.placeholder) : topicPermissions
        return topics.first { $0.exchange == exchange }?.write.withoutPlaceholder
    }
}

// MARK: - Messages

extension AsyncAPIDocument {
    private static func message(_ contract: MessageContract) -> JSONValue {
        var message: [String: JSONValue] = [
            "name": .string(contract.id), "title": .string("\(contract.title), version \(contract.version)"),
            "summary": .string(contract.about), "contentType": .string(contract.contentType),
            "headers": headers,
            "payload": [
                "schemaFormat": "application/schema+json;version=draft-2020-12",
                "schema": ["$ref": .string("\(schemaFolder)/\(contract.fileName)")],
            ],
        ]
        if let type = contract.messageType {
            message["bindings"] = ["amqp": ["messageType": .string(type), "bindingVersion": "0.3.0"]]
            message["correlationId"] = [
                "location": "$message.payload#/trace/correlation", "description": "The id of the domain event.",
            ]
        }
        return .object(message)
    }

    private static let markMessage: JSONValue = [
        "name": .string(mark), "title": "Mark", "summary": "A message without a body. Its reader knows its message id.",
    ]

    /// The AMQP headers of retried messages and of dead letters; all are optional.
    private static let headers: JSONValue = [
        "type": "object",
        "properties": .object(
            Dictionary(
                HeaderName.all.map { name in
                    let isNumber = [
                        HeaderName.attempt, HeaderName.firstSeen, HeaderName.failedAt, HeaderName.arrived,
                    ].contains(name)
                    let type: JSONValue = isNumber ? ["integer", "string"] : ["string", "boolean"]
                    return (name, ["type": type])
                }
            ) { first, _ in first }),
    ]
}

extension String {
    /// The text with `{app}` for the app.
    fileprivate var withoutPlaceholder: String {
        replacing(BusChannel.placeholder.rawValue, with: "{app}").replacing(
            BusChannel.webhook.rawValue, with: "{webhook}")
    }
}

extension Topology.Argument {
    fileprivate var json: JSONValue {
        switch self {
        case .text(let text): .string(text.withoutPlaceholder)
        case .number(let number): .int(number)
        }
    }
}

extension Topology {
    fileprivate var workQueues: [String] { queues.map(\.name).filter { deadLetterQueue(of: $0) != nil } }

    /// The dead-letter queue of a work queue; `nil` for other queues.
    fileprivate func deadLetterQueue(of queue: String) -> String? {
        bindings.first { $0.exchange == ExchangeName.dead.name && $0.routingKey == queue }?.queue
    }

    /// The work queue of a dead-letter queue; `nil` for other queues.
    fileprivate func workQueue(of queue: String) -> String? {
        bindings.first { $0.exchange == ExchangeName.dead.name && $0.queue == queue }?.routingKey
    }
}

extension ExchangeName {
    /// The internal exchanges to which users publish.
    fileprivate static func named(_ name: String) -> ExchangeName? {
        (RetryLevel.allCases.map(ExchangeName.retry) + [.dead, .return, .marks]).first { $0.name == name }
    }
}
