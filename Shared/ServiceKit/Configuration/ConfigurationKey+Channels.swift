extension ConfigurationKey {
    package static let apnsChannelsURL = ConfigurationKey(
        "APNS_CHANNELS_URL", .url(schemes: ["https"]),
        default: "https://api-manage-broadcast.push.apple.com:2196",
        summary: "The URL of channel management in production.")
    package static let apnsChannelsSandboxURL = ConfigurationKey(
        "APNS_CHANNELS_SANDBOX_URL", .url(schemes: ["https"]),
        default: "https://api-manage-broadcast.sandbox.push.apple.com:2195",
        summary: "The URL of channel management in development.")
}
