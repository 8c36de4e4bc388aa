import PushProtocol

extension MessageContract {
    static let notification = MessageContract(
        "notification", Notification.messageVersion, type: Notification.messageType, title: "Notification",
        about: "A decision of rules to notify users, an audience or a broadcast. It has exactly one of the three.",
        [
            Schema.required("app", Schema.app),
            Schema.required("rule", Schema.text("The rule's name.")),
            Schema.required("lane", Schema.lane),
            Schema.required("content", Schema.definition("content")),
            Schema.optional("expiresAt", Schema.expiresAt),
            Schema.optional("delivery", Schema.delivery),
            Schema.optional("scope", Schema.text("Limits APNs registrations to this scope.")),
            Schema.optional("devices", deviceSelection),
            Schema.optional("recipients", Schema.list("Users and their notification ids.", of: recipient)),
            Schema.optional("audience", Schema.definition("audience")),
            Schema.optional("broadcast", Schema.definition("broadcast")),
        ],
        anyOf: [
            [
                "required": ["recipients"],
                "not": ["anyOf": [["required": ["audience"]], ["required": ["broadcast"]]]],
            ],
            [
                "required": ["audience"], "not": ["required": ["broadcast"]],
                "properties": ["recipients": ["maxItems": 0]],
            ],
            [
                "required": ["broadcast"], "not": ["required": ["audience"]],
                "properties": ["recipients": ["maxItems": 0]],
            ],
        ])

    private static let deviceSelection = Schema.object(
        "Selects among the recipients' devices. Absent: all that fit.",
        [
            Schema.optional(
                "platforms",
                Schema.list("The selected platforms.", of: Schema.words(DeviceFilter.Platform.self, "A platform."))),
            Schema.optional(
                "unless",
                Schema.object(
                    "Leaves out devices with another registration.",
                    [
                        Schema.required("kind", Schema.words(RegistrationKind.self, "The kind of that registration.")),
                        Schema.optional("scope", Schema.text("The scope of that registration.")),
                    ])),
        ])

    private static let recipient = Schema.object([
        Schema.required("user", Schema.user("The user.")),
        Schema.required("notification", Schema.uuid("The notification id, derived from event, rule and user.")),
        Schema.optional("badge", Schema.integer("The user's badge. It takes precedence over the content's.")),
    ])

    static let notificationRevocation = MessageContract(
        "notification-revocation", NotificationRevocation.messageVersion, type: NotificationRevocation.messageType,
        title: "Notification revocation", about: "Notifications that senders must not send any more.",
        [
            Schema.required("app", Schema.app),
            Schema.required(
                "notifications", Schema.list("Notification ids.", of: Schema.uuid("A notification's id."))),
            Schema.required("at", Schema.timestamp("When they were revoked.")),
        ])

    static func push(version: Int) -> MessageContract {
        MessageContract(
            "push", version, type: Push.messageType, title: "Push",
            about: "A notification's content and the devices of one provider that receive it. "
                + "The only message with device tokens.",
            [
                Schema.required("app", Schema.app),
                Schema.optional("campaign", Schema.uuid("The campaign that it belongs to, if it belongs to one.")),
                Schema.required("provider", Schema.provider),
                Schema.required("environment", Schema.environment("The provider's environment.")),
                Schema.required("lane", Schema.lane),
                Schema.required("content", Schema.definition("content")),
                Schema.optional("expiresAt", Schema.expiresAt),
                Schema.optional("delivery", Schema.delivery),
                Schema.required("targets", version == 1 ? targetList : targetTable),
            ])
    }

    private static let device = Schema.uuid("The registration's id.")
    private static let notificationID = Schema.uuid("The notification id of the device's user.")
    private static let registeredAt = Schema.timestamp("When the registration was last renewed.")
    private static let token = Schema.text("The device token. Never log it.")
    private static let address = Schema.words(
        Push.Address.self, "The kind of token, if not a device's token.")
    private static let badge = Schema.integer("The user's badge.")

    private static let targetList = Schema.list(
        "The targets.",
        of: Schema.object([
            Schema.required("device", device), Schema.required("token", token),
            Schema.optional("address", address), Schema.required("notification", notificationID),
            Schema.optional("badge", badge), Schema.required("registeredAt", registeredAt),
        ]))

    /// Schemas cannot say that columns have equal lengths, so the description does.
    private static let targetTable = Schema.object(
        "The targets as a table. Row n is the n-th value of each column. A column other than devices and tokens has "
            + "one value when all rows share it.",
        [
            Schema.required("devices", Schema.list("The registrations' ids.", of: device)),
            Schema.required("tokens", Schema.list("The device tokens.", of: token)),
            Schema.required("notifications", Schema.list("The notification ids.", of: notificationID)),
            Schema.required("registeredAt", Schema.list("The registration times.", of: registeredAt)),
            Schema.optional("addresses", Schema.list("The kinds of tokens.", of: Schema.nullable(address))),
            Schema.optional("badges", Schema.list("The badges.", of: Schema.nullable(badge))),
            Schema.optional(
                "fallbacks",
                Schema.list(
                    "Registration tokens for rejected FIDs.", of: Schema.nullable(Schema.text("A token.")))),
            Schema.optional("owners", Schema.list("Hashes of the users.", of: Schema.nullable(Schema.owner))),
        ])

    static func outcomes(version: Int) -> MessageContract {
        let table = Schema.object(
            "Acceptances with one common time, as a table. Row n is the n-th value of each column.",
            [
                Schema.required("at", Schema.timestamp("When the outcomes were known.")),
                Schema.required("devices", Schema.list("The registrations' ids.", of: device)),
                Schema.optional(
                    "ids", Schema.list("The provider's ids.", of: Schema.nullable(Schema.text("The provider's id.")))),
                Schema.required(
                    "notifications",
                    Schema.list("The notification ids; one where all rows share it.", of: notificationID)),
            ])
        let list = Schema.list("The outcomes.", of: Schema.definition("outcome"))
        return MessageContract(
            "outcomes", version, type: Outcomes.messageType, title: "Outcomes",
            about: "The outcomes of a push's targets.",
            [
                Schema.required("app", Schema.app),
                Schema.required("origin", Schema.words(Outcomes.Origin.self, "The provider, or the registry.")),
                Schema.optional("environment", Schema.environment("Absent for outcomes of the registry.")),
                Schema.required("lane", Schema.lane),
                version == 1 ? Schema.required("outcomes", list) : Schema.optional("outcomes", list),
                Schema.optional("pulse", Schema.definition("routeHealth")),
            ] + (version == 1 ? [] : [Schema.optional("accepted", table)]),
            anyOf: version == 1 ? [] : [["required": ["accepted"]], ["required": ["outcomes"]]])
    }
}
