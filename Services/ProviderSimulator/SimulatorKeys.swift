import ServiceKit

extension ConfigurationKey {
    static let simulatorHost = ConfigurationKey(
        "SIMULATOR_HOST", default: "127.0.0.1", summary: "The address that all ports bind to; 0.0.0.0 in a container.")
    static let apnsPort = ConfigurationKey(
        "SIMULATOR_APNS_PORT", .port, default: "9443", summary: "The port of the APNs production environment.")
    static let apnsSandboxPort = ConfigurationKey(
        "SIMULATOR_APNS_SANDBOX_PORT", .port, default: "9444", summary: "The port of the APNs sandbox environment.")
    static let fcmPort = ConfigurationKey(
        "SIMULATOR_FCM_PORT", .port, default: "9445", summary: "The port of FCM and of Google's token endpoint, /token."
    )
    static let webPushPort = ConfigurationKey(
        "SIMULATOR_WEBPUSH_PORT", .port, default: "9446", summary: "The port of the push service of browsers.")
    static let webPushURL = ConfigurationKey(
        "SIMULATOR_WEBPUSH_URL",
        summary: "The push service in endpoints of browsers, https://host:port; default: localhost and the port."
    )
    static let controlPort = ConfigurationKey(
        "SIMULATOR_CONTROL_PORT", .port, default: "9480",
        summary: "The port of the control API and the phone wall, plain HTTP.")
    static let certificateFile = ConfigurationKey(
        "SIMULATOR_CERT_FILE", .file,
        summary: "The certificate chain (PEM) of the provider ports; generated when absent.")
    static let keyFile = ConfigurationKey(
        "SIMULATOR_KEY_FILE", .file, summary: "The private key (PEM) of SIMULATOR_CERT_FILE.")
    static let authorityFile = ConfigurationKey(
        "SIMULATOR_CA_FILE",
        summary: "Where to write the CA certificate of a generated certificate; reused after a restart.")
    static let clientAuthorityFile = ConfigurationKey(
        "SIMULATOR_CLIENT_CA_FILE", .file,
        summary: "The CA (PEM) of client certificates that APNs accepts instead of provider tokens.")
    static let logSize = ConfigurationKey(
        "SIMULATOR_LOG_SIZE", .integer(0...10_000_000), default: "100000",
        summary: "The number of requests to keep; with 0, only counts are kept.")
    static let apnsStreams = ConfigurationKey(
        "SIMULATOR_APNS_STREAMS", .integer(1...100_000), default: "1000",
        summary: "Concurrent streams on an APNs connection after its first accepted push; one before that.")
    static let tokenScenarios = ConfigurationKey(
        "SIMULATOR_TOKEN_SCENARIOS", .boolean, default: "false",
        summary: "Whether device tokens starting with 51 play the scenario they encode.")
    static let accessTokenLifetime = ConfigurationKey(
        "SIMULATOR_ACCESS_TOKEN_LIFETIME", .duration(.seconds(1) ... .seconds(86_400)), default: "3599s",
        summary: "The lifetime of access tokens from the token endpoint.")

    static let remoteImages = ConfigurationKey(
        "SIMULATOR_REMOTE_IMAGES", .boolean, default: "false",
        summary: "Whether the phone wall fetches images that pushes link to, from any host.")

    /// The settings of the simulator beyond the common ones.
    static let simulator: [ConfigurationKey] = [
        .simulatorHost, .apnsPort, .apnsSandboxPort, .fcmPort, .webPushPort, .webPushURL, .controlPort,
        .certificateFile, .keyFile, .authorityFile, .clientAuthorityFile, .logSize, .apnsStreams, .tokenScenarios,
        .accessTokenLifetime, .remoteImages,
    ]
}
