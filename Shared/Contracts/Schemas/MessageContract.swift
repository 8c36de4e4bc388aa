package import PushProtocol

/// A version of a message on the bus, for machines.
package struct MessageContract: Hashable, Sendable {
    /// The name without the version: `push`.
    package let name: String
    package let version: Int
    package let title: String
    /// One or two sentences for people.
    package let about: String
    /// The AMQP property `type`; `nil` for CloudEvents.
    package let messageType: String?
    package let contentType: String
    /// The JSON Schema (2020-12) of the body.
    package let schema: JSONValue

    /// The name in file names and references: `push.v2`.
    package var id: String { "\(name).v\(version)" }
    /// The name of the schema's file.
    package var fileName: String { "\(id).json" }

    /// The base of the schemas' `$id`. It names the schemas and serves nothing.
    static let base = "https://heliograph.example/contracts/schemas/"

    /// A message of this project: the members `type`, `version` and `trace` stand beside its own.
    init(
        _ name: String, _ version: Int, type: String, title: String, about: String, _ members: [Schema.Member],
        anyOf alternatives: [JSONValue] = []
    ) {
        let envelope = [
            Schema.required("type", Schema.constant(.string(type), "The kind of message.")),
            Schema.required("version", Schema.constant(.int(Int64(version)), "The version of the message's form.")),
            Schema.required("trace", Schema.definition("trace")),
        ]
        var schema = Schema.object(envelope + members)
        if !alternatives.isEmpty {
            schema = schema.merging(["anyOf": .array(alternatives)])
        }
        self.init(
            name, version, title: title, about: about, messageType: type, contentType: "application/json", schema)
    }

    init(
        _ name: String, _ version: Int, title: String, about: String, messageType: String?, contentType: String,
        _ schema: JSONValue
    ) {
        self.name = name
        self.version = version
        self.title = title
        self.about = about
        self.messageType = messageType
        self.contentType = contentType
        let head: JSONValue = [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": .string("\(Self.base)\(name).v\(version).json"),
            "title": .string(title), "description": .string(about),
        ]
        self.schema = head.merging(Schema.withDefinitions(schema))
    }
}

extension MessageContract {
    /// All message versions that services read, in the order of their way through the bus.
    package static let all: [MessageContract] = [
        domainEvent, directNotification, deliveryReport, receiptReport, deadDeviceReport, notification,
        notificationRevocation, push(version: 1),
        push(version: 2),
        outcomes(version: 1), outcomes(version: 2), deviceCommand, deviceEvent, campaignCursor, censusReport,
        channelRequest, channelAnswer,
    ]
}
