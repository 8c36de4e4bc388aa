import PushProtocol

extension MessageContract {
    static let directNotification = MessageContract(
        "direct-notification", 1, title: "Direct notification",
        about: "A CloudEvent whose data words a notification. Built-in rules decide about it. "
            + "Readers refuse unknown members of the data.",
        messageType: nil, contentType: CloudEvents.structuredContentType,
        cloudEvent(
            type: Schema.constant(.string(DirectNotification.eventType), "The event's type."), data: directData))

    private static let directData: JSONValue = {
        let name = Schema.text(
            "A name of 1 to 256 bytes without control characters.", pattern: #"^[^\u0000-\u001F\u007F]+$"#,
            length: 1...256)
        func time(_ about: String) -> JSONValue { Schema.time(about) }
        let members: [Schema.Member] = [
            Schema.optional(
                "users",
                Schema.list(
                    "User ids.", of: ["anyOf": [Schema.user("A user."), ["type": "integer"]]],
                    atMost: DirectNotification.maximumUsers
                ).merging(["minItems": 1])),
            Schema.optional("group", name.merging(["description": "A group of the app's rules."])),
            Schema.optional(
                "roles", Schema.list("Only members with one of these roles.", of: name).merging(["minItems": 1])),
            Schema.optional("topic", Schema.group("The subscribers of a topic.")),
            Schema.optional("tag", Schema.group("The users with a tag.")),
            Schema.optional("everyone", Schema.constant(true, "All users of the app.")),
            Schema.required("content", directContent),
            Schema.optional("type", name.merging(["description": "A preference type of the app. Absent: direct."])),
            Schema.optional("lane", Schema.lane),
            Schema.optional("at", time("When to send it. Absent: now.")),
            Schema.optional("expires", time("Not sent after this time.")),
            Schema.optional(
                "ttl",
                Schema.integer(
                    "The lifetime in seconds, instead of expires.",
                    1...DirectNotification.maximumTTL.components.seconds)),
            Schema.optional(
                "collapse",
                Schema.text("A later notification with this key replaces it on screen.", pattern: "^[!-~]{1,64}$")),
            Schema.optional("silent", Schema.bool("Whether it wakes the app and shows nothing.")),
            Schema.optional("pushOnly", Schema.bool("Whether the inbox does not keep it.")),
        ]
        return Schema.object("The notification. It has exactly one kind of recipients.", isStrict: true, members)
            .merging([
                "oneOf": .array(["users", "group", "topic", "tag", "everyone"].map(Self.requires)),
                "allOf": directRules,
            ])
    }()

    /// The members that contradict each other.
    private static let directRules: JSONValue = {
        func content(_ schema: JSONValue) -> JSONValue { ["properties": ["content": schema]] }
        func any(_ names: [String]) -> JSONValue { ["anyOf": .array(names.map(requires))] }
        let shown = ["title", "subtitle", "body", "badge", "sound", "image", "interruptionLevel"]
        return [
            ["if": requires("roles"), "then": requires("group")],
            ["not": ["required": ["expires", "ttl"]]],
            [
                "if": ["required": ["silent"], "properties": ["silent": ["const": true]]],
                "then": content(["not": any(shown)]), "else": content(any(["title", "body", "badge"])),
            ],
            ["if": any(["type", "at"]), "then": content(any(["title", "body"]))],
            [
                "if": any(["topic", "tag", "everyone"]),
                "then": ["not": any(["type", "at"]), "properties": ["lane": ["const": "bulk"]]],
            ],
        ]
    }()

    private static func requires(_ name: String) -> JSONValue { ["required": [.string(name)]] }

    private static let directContent: JSONValue = {
        func words(_ about: String) -> JSONValue { Schema.text(about).merging(["minLength": 1]) }
        return Schema.object(
            "The content. The texts are literal.", isStrict: true,
            [
                Schema.optional("title", words("The title.")),
                Schema.optional("subtitle", words("The subtitle; Apple's devices only.")),
                Schema.optional("body", words("The text.")),
                Schema.optional("badge", Schema.integer("The number on the app's icon; 0 clears it.", 0...99_999)),
                Schema.optional("sound", words("The name of a sound file in the app, or default.")),
                Schema.optional("image", Schema.text("The https URL of an image.", pattern: "^https://")),
                Schema.optional("link", words("The URL that a tap opens.")),
                Schema.optional("category", words("The app's category.")),
                Schema.optional("thread", words("The grouping key.")),
                Schema.optional("data", ["type": "object", "description": "The app's own members."]),
                Schema.optional(
                    "interruptionLevel", Schema.words(InterruptionLevel.self, "Apple's interruption level.")),
                Schema.optional(
                    "apns",
                    Schema.object(
                        "Overrides for the APNs request.", isStrict: true,
                        [
                            Schema.optional(
                                "headers",
                                [
                                    "type": "object", "description": "Headers apns-*, except apns-id.",
                                    "additionalProperties": ["type": "string"],
                                    "propertyNames": ["pattern": "^apns-", "not": ["const": "apns-id"]],
                                ]),
                            Schema.optional(
                                "payload", ["type": "object", "description": "Merged into the payload."]),
                        ])),
                Schema.optional(
                    "fcm",
                    Schema.object(
                        "Overrides for FCM's message.", isStrict: true,
                        [
                            Schema.optional(
                                "message", ["type": "object", "description": "Merged into the message."]),
                            Schema.optional("validateOnly", Schema.bool("A dry run at FCM.")),
                        ])),
                Schema.optional(
                    "web",
                    Schema.object(
                        "Overrides for the Web Push request.", isStrict: true,
                        [
                            Schema.optional(
                                "message", ["type": "object", "description": "Merged into the message."]),
                            Schema.optional(
                                "urgency", Schema.words(WebPushOverride.Urgency.self, "The header urgency.")),
                        ])),
            ])
    }()
}
