import PushProtocol

extension Schema {
    static let owner = integer("A hash of the registration's user.", 0...9_007_199_254_740_991)
    static let refusedFID = text("The provider's reason for rejecting a FID.")

    static let outcome = object(
        "The outcome of one notification on one device.",
        [
            required("notification", uuid("The notification's id.")),
            optional("device", uuid("The registration. Absent when the user has none.")),
            required("answer", definition("answer")),
            required("at", timestamp("When the outcome was known.")),
            optional("registeredAt", timestamp("The registration time that the push was addressed with.")),
            optional("elsewhere", environment("The environment that accepted the push, if not the push's own.")),
            optional("refusedFID", refusedFID),
            optional("owner", owner),
        ])

    static let answer: JSONValue = {
        let reason = text("The provider's code, or this project's.")
        func answer(_ dispositions: [Outcome.Answer.Disposition], _ about: String, _ members: [Member]) -> JSONValue {
            object(about, [required("disposition", words(dispositions.map(\.rawValue), "The answer."))] + members)
        }
        return [
            "description": "The provider's answer for one device, or the reason that nothing was sent.",
            "oneOf": [
                answer(
                    [.accepted], "Accepted by the provider. That is not a delivery.",
                    [optional("id", text("The provider's id of the message."))]),
                answer(
                    [.unregistered], "The token is gone.",
                    [
                        required("reason", reason),
                        optional("since", timestamp("When it went, if the provider says so.")),
                    ]),
                answer(
                    [.rejected], "Rejected for good.",
                    [
                        required("reason", reason),
                        optional("suspectToken", bool("Whether the token may be the cause.")),
                    ]),
                answer(
                    [.throttled, .misconfigured, .skipped, .unknown],
                    "Throttled too long; rejected for our configuration; not sent on purpose; or possibly accepted.",
                    [required("reason", reason)]),
                answer([.expired], "Expired before it was sent.", []),
            ],
        ]
    }()

    static let routeHealth = object(
        "The health of a sender's route: one app in one environment.",
        [
            required("sender", uuid("The sender process.")),
            required("minute", timestamp("The start of the reported minute.")),
            required("answered", integer("Targets that the provider answered in that minute so far.")),
            optional("acceptedAt", timestamp("The provider's last acceptance.")),
            optional(
                "storm",
                object(
                    "Present while many tokens are rejected because of the route.",
                    [
                        required("since", timestamp("The start of the spike.")),
                        required("until", timestamp("The latest time known to be part of it.")),
                    ])),
        ])
}
