package import PushProtocol

extension MessageContract {
    /// A CloudEvent in structured mode, as rules read it.
    ///
    /// - Parameters:
    ///   - type: the schema of the attribute `type`.
    ///   - data: the schema of the data, which is then required; `nil`: any JSON or none.
    package static func cloudEvent(type: JSONValue? = nil, data: JSONValue? = nil) -> JSONValue {
        func attribute(_ about: String, _ limit: Int = CloudEvents.maximumAttributeLength) -> JSONValue {
            Schema.text(
                "\(about) At most \(limit) bytes.", pattern: #"^[^\u0000-\u001F\u007F]+$"#, length: 1...limit)
        }
        let members: [Schema.Member] = [
            Schema.required("specversion", Schema.constant("1.0", "The version of CloudEvents.")),
            Schema.required(
                "id", attribute("The event's id, unique within its source.", CloudEvents.maximumNameLength)),
            Schema.required("source", attribute("The producer of the event, as a URI reference.")),
            Schema.required(
                "type",
                type ?? attribute("The event's type, as the app's rule file lists it.", CloudEvents.maximumNameLength)),
            Schema.optional("subject", attribute("The subject of the event in its source.")),
            Schema.optional("time", Schema.time("When the event happened.")),
            Schema.optional("expirytime", Schema.time("No notification is sent after this time.")),
            Schema.optional("traceparent", attribute("W3C Trace Context, text form.")),
            Schema.optional("datacontenttype", Schema.text("Always application/json. Readers ignore it.")),
            data.map { Schema.required("data", $0) }
                ?? Schema.optional(
                    "data",
                    Schema.any("Any JSON, nested at most \(CloudEvents.maximumDataDepth) levels. Absent: {}.")),
            Schema.optional("data_base64", false),
        ]
        return Schema.object(members)
    }

    static let domainEvent = MessageContract(
        "domain-event", 1, title: "Domain event",
        about: "A CloudEvents 1.0 event of an upstream service, in structured mode. Other attributes are ignored. "
            + "In binary mode the attributes are AMQP headers prefixed cloudEvents_ or cloudEvents:, and the body is "
            + "the data.",
        messageType: nil, contentType: CloudEvents.structuredContentType, cloudEvent())

    static let deliveryReport = report(
        .delivery, title: "Delivery report",
        about: "the delivery state of one notification. "
            + "Rules publish it for rules with a report.",
        data: "The delivery state of one notification.",
        [
            Schema.required("notification_id", Schema.uuid("The notification's id.")),
            Schema.required("event_id", Schema.text("The id of the upstream's event.")),
            Schema.required("user_id", Schema.user("The user.")),
            Schema.required("rule", Schema.text("The rule's name.")),
            Schema.required("push_sent", Schema.bool("Whether a push request was sent to a provider.")),
            Schema.required(
                "devices_notified",
                Schema.integer("The devices for which a provider accepted the push.", 0...Int64(Int32.max))),
            Schema.required(
                "failed", Schema.bool("Whether push requests were sent, and no provider accepted one.")),
        ])

    static let receiptReport = report(
        .receipt, title: "Receipt report",
        about: "a user opened or dismissed a notification. "
            + "Rules publish it for apps with a queue of reports or a webhook.",
        data: "A receipt.",
        [
            Schema.required("notification_id", Schema.uuid("The notification's id.")),
            Schema.optional(
                "event_id", Schema.text("The id of the upstream's event. Absent if the event is deleted.")),
            Schema.required("user_id", Schema.user("The user.")),
            Schema.optional("rule", Schema.text("The rule's name. Absent if the decision is deleted.")),
            Schema.required(
                "receipt", Schema.words(["opened", "dismissed"], "What the user did.")),
            Schema.required("at", Schema.time("When the receipt was first stored.")),
        ])

    static let deadDeviceReport = report(
        .deadDevice, title: "Dead device report",
        about: "a device gets no pushes any more, because its provider reported or "
            + "dropped its token. The registry publishes it for apps with a queue of reports or a webhook.",
        data: "A registration that ended.",
        [
            Schema.required("device_id", Schema.uuid("The registration's id.")),
            Schema.required("user_id", Schema.user("The registration's user.")),
            Schema.required("provider", Schema.words(Provider.self, "The push provider.")),
            Schema.required("environment", Schema.words(ProviderEnvironment.self, "The provider's environment.")),
            Schema.required("kind", Schema.words(RegistrationKind.self, "The purpose of the token.")),
            Schema.optional("installation_id", Schema.text("The app's installation, if the app named one.")),
            Schema.required(
                "change",
                Schema.words(
                    [DeviceEvent.Change.deactivated.rawValue, DeviceEvent.Change.stale.rawValue],
                    "Whether the provider reported the token, or dropped it because it was unused.")),
            Schema.optional("reason", Schema.text("The provider's reason.")),
            Schema.required("at", Schema.time("When the registration ended.")),
        ])

    /// A report to an upstream.
    ///
    /// - Parameter data: the description of the data, which has `members`.
    private static func report(
        _ kind: ReportKind, title: String, about: String, data: String, _ members: [Schema.Member]
    ) -> MessageContract {
        MessageContract(
            "\(kind.rawValue)-report", 1, title: title, about: "A CloudEvent for the upstream: \(about)",
            messageType: nil, contentType: CloudEvents.structuredContentType,
            cloudEvent(
                type: Schema.constant(.string(kind.eventType), "The event's type."),
                data: Schema.object(data, members)))
    }
}
