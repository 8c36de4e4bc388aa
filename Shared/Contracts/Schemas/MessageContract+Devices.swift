import PushProtocol

extension MessageContract {
    static let deviceCommand = MessageContract(
        "device-command", DeviceCommand.messageVersion, type: DeviceCommand.messageType, title: "Device command",
        about: "A command to the registry: a change of a registration or of a user's topics and tags, or the end of a "
            + "campaign.",
        [
            Schema.required("app", Schema.app),
            Schema.required(
                "command",
                [
                    "description": "The command. Its verb is the second word of the routing key.",
                    "oneOf": [
                        register, unregister, deactivate, suspect, correct,
                        membership([.subscribe, .unsubscribe], "topic"), membership([.tag, .untag], "tag"),
                        cancel,
                    ],
                ]),
        ])

    private static func command(
        _ verbs: [DeviceCommand.Command.Verb], _ about: String, _ members: [Schema.Member]
    ) -> JSONValue {
        Schema.object(
            about, [Schema.required("verb", Schema.words(verbs.map(\.rawValue), "The command's name."))] + members)
    }

    private static let token = Schema.text("The device token. Never log it.")
    private static let environment = Schema.environment("The provider's environment.")
    private static let deviceID = Schema.uuid("The registration's id.")
    private static let reason = Schema.text("The reason, for people.")

    private static let register = command(
        [.register], "Registers a user's token.",
        [
            Schema.required("user", Schema.user("The user.")), Schema.required("provider", Schema.provider),
            Schema.required("environment", environment), Schema.required("token", token),
            Schema.optional("kind", Schema.words(RegistrationKind.self, "The purpose of the token.")),
            Schema.optional("installation", Schema.installation),
            Schema.optional("scope", Schema.text("Distinguishes tokens of one installation and kind.")),
            Schema.optional("topic", Schema.text("The token's apns-topic, if it is not the app's.")),
            Schema.optional(
                "platform", Schema.words(DevicePlatform.self, "The platform of an FCM token. Absent: android.")),
            Schema.optional("locale", Schema.text("BCP 47, such as de-CH.")),
            Schema.optional("timeZone", Schema.text("IANA, such as Europe/Zurich.")),
            Schema.optional("appVersion", Schema.text("The app's version.")),
            Schema.optional("at", Schema.timestamp("When the device registered, by the publisher's clock.")),
        ])

    private static let unregister = command(
        [.unregister], "Unregisters a user's token.",
        [
            Schema.required("user", Schema.user("The user.")), Schema.required("provider", Schema.provider),
            Schema.required("environment", environment), Schema.required("token", token),
            Schema.optional("at", Schema.timestamp("Ends registrations up to this time.")),
        ])

    private static let deactivate = command(
        [.deactivate], "Deactivates a registration that the provider reported as gone.",
        [
            Schema.required("device", deviceID),
            Schema.required(
                "notRegisteredSince", Schema.timestamp("Only if it was not registered again after this time.")),
            Schema.required("reason", reason),
        ])

    private static let suspect = command(
        [.suspect], "Marks a FID as suspect.",
        [
            Schema.required("device", deviceID),
            Schema.required("at", Schema.timestamp("When the provider rejected it.")),
            Schema.required("reason", reason),
        ])

    private static let correct = command(
        [.correct], "Moves the registration to the other environment.",
        [Schema.required("device", deviceID), Schema.required("environment", environment)])

    private static let cancel = command(
        [.cancel], "Cancels a campaign whose event was revoked.",
        [Schema.required("campaign", Schema.uuid("The campaign's id."))])

    private static func membership(_ verbs: [DeviceCommand.Command.Verb], _ group: String) -> JSONValue {
        command(
            verbs, "Adds a user to a \(group), or removes them.",
            [
                Schema.required("user", Schema.user("The user.")),
                Schema.required(group, Schema.group("The \(group).")),
                Schema.optional("at", Schema.timestamp("When the change was made. Later changes take precedence.")),
            ])
    }

    static let deviceEvent = MessageContract(
        "device-event", DeviceEvent.messageVersion, type: DeviceEvent.messageType, title: "Device event",
        about: "A change of a registration, or of all registrations of a user. It has no token.",
        [
            Schema.required("app", Schema.app),
            Schema.required("past", Schema.words(DeviceEvent.Change.self, "The kind of change.")),
            Schema.required("user", Schema.user("The registration's user when the event occurred.")),
            Schema.optional("device", Schema.definition("device")),
            Schema.optional("reason", reason),
            Schema.required("at", Schema.timestamp("When the registry made the change.")),
            Schema.optional(
                "revokes",
                Schema.timestamp("Pushes to registrations up to this time must no longer be sent to the device.")),
        ])

    static let campaignCursor = MessageContract(
        "campaign-cursor", 1, type: "heliograph.campaign-cursor", title: "Campaign cursor",
        about: "The progress of a campaign through one range of its audience. Only the registry uses it.",
        [
            Schema.required("app", Schema.app), Schema.required("campaign", Schema.uuid("The campaign's id.")),
            Schema.required("range", Schema.integer("The range's number.")),
            Schema.optional("copy", Schema.integer("The copy's number, from 1.")),
            Schema.required("step", Schema.integer("Steps made.")),
            Schema.required("position", Schema.text("The last user processed; empty at the beginning.")),
            Schema.required(
                "tally",
                Schema.object(
                    "The sum of all steps.",
                    [
                        Schema.required("users", Schema.integer("Users with a push, or without a device.")),
                        Schema.required("devices", Schema.integer("Devices in published pushes.")),
                        Schema.required("pushes", Schema.integer("Published pushes.")),
                        Schema.required("without", Schema.integer("Users without a device.")),
                        Schema.required("looked", Schema.integer("Rows read.")),
                    ])),
            Schema.required("isAtEnd", Schema.bool("Whether the range has been walked to its end.")),
        ])

    static let censusReport = MessageContract(
        "census-report", CensusReport.messageVersion, type: CensusReport.messageType, title: "Census report",
        about: "The notifications that one process settled since its last report.",
        [
            Schema.required("service", Schema.text("The service's name.")),
            Schema.required("process", Schema.uuid("A random id of the process.")),
            Schema.required("at", Schema.timestamp("The end of the interval that the report covers.")),
            Schema.optional("oldest", Schema.integer("The age of the oldest unsettled delivery, in milliseconds.")),
            Schema.required("isFinal", Schema.bool("Whether the process stops after this report.")),
            Schema.required("settled", Schema.definition("censusKeys")),
            Schema.required("retried", Schema.definition("censusKeys")),
            Schema.required("deadLettered", Schema.definition("censusKeys")),
        ])
}
