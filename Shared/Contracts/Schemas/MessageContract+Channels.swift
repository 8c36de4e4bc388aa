import PushProtocol

extension MessageContract {
    static let channelRequest = MessageContract(
        "channel-request", ChannelRequest.messageVersion, type: ChannelRequest.messageType, title: "Channel request",
        about: "A request to create or delete an APNs broadcast channel.",
        Schema.channelMembers + [
            Schema.required("operation", ["enum": ["create", "delete"], "description": "What to do."]),
            Schema.optional("channel", Schema.channelID),
        ],
        anyOf: [
            ["properties": ["operation": ["const": "create"]]],
            ["properties": ["operation": ["const": "delete"]], "required": ["channel"]],
        ])

    static let channelAnswer = MessageContract(
        "channel-answer", ChannelAnswer.messageVersion, type: ChannelAnswer.messageType, title: "Channel answer",
        about: "The answer to a request to create or delete an APNs broadcast channel.",
        Schema.channelMembers + [
            Schema.required("result", ["enum": ["created", "deleted", "refused"], "description": "What happened."]),
            Schema.optional("channel", Schema.channelID),
            Schema.optional("reason", Schema.text("Why APNs or the sender refuses the request.")),
        ],
        anyOf: [
            ["properties": ["result": ["const": "created"]], "required": ["channel"]],
            ["properties": ["result": ["const": "deleted"]]],
            ["properties": ["result": ["const": "refused"]], "required": ["reason"]],
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
