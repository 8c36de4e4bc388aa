import PushProtocol

extension MessageContract {
    static let channelRequest = MessageContract(
        "channel-request", ChannelRequest.messageVersion, type: ChannelRequest.messageType, title: "Channel request",
        about: "A request to create or delete an APNs broadcast channel.",
        Schema.channelMembers + [
            Schema.required("operation", Schema.words(["create", "delete"], "What to do.")),
            Schema.optional("channel", Schema.channelID),
        ],
        anyOf: [
            ["properties": ["operation": Schema.constant("create", "This case.")]],
            ["properties": ["operation": Schema.constant("delete", "This case.")], "required": ["channel"]],
        ])

    static let channelAnswer = MessageContract(
        "channel-answer", ChannelAnswer.messageVersion, type: ChannelAnswer.messageType, title: "Channel answer",
        about: "The answer to a request to create or delete an APNs broadcast channel.",
        Schema.channelMembers + [
            Schema.required("result", Schema.words(["created", "deleted", "refused"], "What happened.")),
            Schema.optional("channel", Schema.channelID),
            Schema.optional("reason", Schema.text("Why APNs or the sender refuses the request.")),
        ],
        anyOf: [
            ["properties": ["result": Schema.constant("created", "This case.")], "required": ["channel"]],
            ["properties": ["result": Schema.constant("deleted", "This case.")]],
            ["properties": ["result": Schema.constant("refused", "This case.")], "required": ["reason"]],
        ])
}

extension Schema {
    fileprivate static let channelMembers = [
        required("app", app),
        required("environment", environment("The provider's environment.")),
        required("id", uuid("The id of the request and of its answers.")),
    ]

    static let channelID = text("The channel's id, as APNs gave it.", pattern: "^[A-Za-z0-9+/=]{1,128}$")
}
