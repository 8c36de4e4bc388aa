import PushProtocol

extension Schema {
    /// The definitions that several messages share, by name.
    static let definitions: [String: JSONValue] = [
        "trace": trace, "content": content, "audience": audience, "broadcast": broadcast, "deviceFilter": deviceFilter,
        "outcome": outcome, "answer": answer, "routeHealth": routeHealth, "device": device,
        "censusKeys": text(
            "Shortened notification ids in base64, eight bytes each; sixteen with a time.",
            pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"),
    ]

    private static let trace = object(
        "The origin of the message: an event can be followed through all stages by it.",
        [
            required("id", uuid("The message's id. It is derived, so a repeated cause gives the same id.")),
            required(
                "correlation",
                text(
                    "The id of the domain event. At most \(WireCoding.maximumShortString) bytes.",
                    length: 0...WireCoding.maximumShortString)),
            required("causation", text("The id of the message from which this one was produced.")),
            optional("traceparent", text("W3C Trace Context, text form.")),
        ])

    private static let content = object(
        "The content of a notification, independent of the provider.",
        [
            optional("title", text("The title.")),
            optional("subtitle", text("The subtitle; Apple's devices only.")),
            optional("body", text("The text.")),
            optional("badge", integer("The number on the app's icon; 0 clears it.")),
            optional("sound", text("The name of a sound file in the app, or default.")),
            optional("category", text("The app's category, which defines the notification's actions.")),
            optional("thread", text("The grouping key.")),
            optional("deepLink", text("The URL that a tap opens.")),
            optional("image", text("The https URL of an image.")),
            optional(
                "data", ["type": "object", "description": "The app's own members. Values may be any JSON."]),
            required("silent", bool("Whether the push wakes the app and displays nothing.")),
            optional("interruptionLevel", words(InterruptionLevel.self, "Apple's interruption level.")),
            optional(
                "collapseKey",
                text("A later notification with the same key replaces this one on screen. At most 64 bytes.")),
            optional(
                "apns",
                object(
                    "Overrides for the APNs request.",
                    [
                        optional(
                            "headers",
                            [
                                "type": "object", "additionalProperties": ["type": "string"],
                                "description": "Headers such as apns-priority.",
                            ]),
                        optional("payload", any("Merged into the payload.")),
                        optional(
                            "channels",
                            [
                                "type": "object", "additionalProperties": channelID,
                                "description":
                                    "The broadcast channel of each environment, for the start of a Live Activity.",
                            ]),
                    ])),
            optional(
                "fcm",
                object(
                    "Overrides for FCM's message.",
                    [
                        optional("message", any("FCM fields without a target, merged into the message.")),
                        optional("validateOnly", bool("A dry run: FCM validates the message and delivers nothing.")),
                    ])),
            optional(
                "web",
                object(
                    "Overrides for the Web Push request.",
                    [
                        optional("message", any("Merged into the declarative push message.")),
                        optional("urgency", words(WebPushOverride.Urgency.self, "The header urgency.")),
                    ])),
        ])

    private static let deviceFilter = object(
        "Selects devices of an audience. A device must match all given criteria. An empty list matches nothing.",
        isStrict: true,
        [
            optional("platform", list("Platforms.", of: words(DeviceFilter.Platform.self, "A platform."))),
            optional("locale", list("BCP 47 language ranges.", of: text("Such as de or de-CH."))),
            optional("timeZone", list("IANA time zones.", of: text("Such as Europe/Zurich."))),
            optional(
                "appVersion",
                object(
                    "App versions.", isStrict: true,
                    [
                        optional("from", appVersion("The lowest version.")),
                        optional("until", appVersion("The lowest version that no longer matches.")),
                    ])),
            optional(
                "lastSeen",
                object(
                    "The time of the device's last registration.", isStrict: true,
                    [
                        optional("after", timestamp("The earliest time.")),
                        optional("before", timestamp("The earliest time that no longer matches.")),
                    ])),
        ])

    private static func appVersion(_ about: String) -> JSONValue {
        text(about, pattern: #"^[0-9]{1,9}(\.[0-9]{1,9}){0,7}$"#)
    }

    private static let audience: JSONValue = {
        func selection(_ to: String, _ members: [Member]) -> JSONValue {
            let common = [
                required("campaign", uuid("The campaign's id, the same in all of its messages.")),
                required("to", constant(.string(to), "The kind of audience.")),
                optional("devices", definition("deviceFilter")),
                optional("rate", integer("The maximum pushes a second.", 1...Int64(Audience.maximumRate))),
                optional("holdOut", integer("The share of the members that is left out, in percent.", 1...99)),
                optional("resolve", bool("Whether the members go to rules as events, and get no pushes.")),
            ]
            let names = ["topic", "tag", "users", "part", "of"].filter { name in !members.contains { $0.name == name } }
            // The reader knows the members of all kinds.
            return object(isStrict: true, common + members + names.map { optional($0, any("Ignored for this kind.")) })
        }
        let part = "of a long list: messages that differ only in this and in their ids."
        return [
            "description": "The audience of a campaign. Readers refuse unknown members.",
            "oneOf": [
                selection("everyone", []),
                selection("topic", [required("topic", group("The topic."))]),
                selection("tag", [required("tag", group("The tag."))]),
                selection(
                    "users",
                    [
                        required("users", list("The users.", of: user("A user."))),
                        optional("part", integer("The number of this part \(part)", 1...Int64(Audience.maximumParts))),
                        optional("of", integer("The number of parts.", 1...Int64(Audience.maximumParts))),
                    ]),
            ],
        ]
    }()

    private static let broadcast: JSONValue = {
        func destination(_ to: String, _ members: [Member]) -> JSONValue {
            object(
                [
                    required("notification", uuid("The notification's id.")),
                    required("to", constant(.string(to), "The kind of destination.")),
                ] + members)
        }
        return [
            "description": "A destination whose devices only the provider knows.",
            "oneOf": [
                destination(
                    "channel",
                    [
                        required("channel", channelID),
                        required("environment", environment("The environment in which it was created.")),
                    ]),
                destination(
                    "topic",
                    [
                        required(
                            "topic",
                            text("An FCM topic.", pattern: "^[A-Za-z0-9_.~%-]{1,\(FCMTopic.maximumLength)}$"))
                    ]),
                destination(
                    "condition", [required("condition", text("A condition over at most five FCM topics."))]),
            ],
        ]
    }()

    private static let device = object(
        "The registration, without its token.",
        [
            required("id", uuid("The registration's id.")), required("provider", provider),
            required("environment", environment("The provider's environment.")),
            required("kind", words(RegistrationKind.self, "The purpose of the token.")),
            optional("installation", installation),
            required("active", bool("Whether the user receives pushes on it after the change.")),
        ])

    static let installation = text(
        "The installation of the app: \(InstallationID.rule).", pattern: "^[!-~]{1,\(InstallationID.maximumLength)}$")
}
