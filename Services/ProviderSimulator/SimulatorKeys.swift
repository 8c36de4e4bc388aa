import ServiceKit

extension ConfigurationKey {
    static let simulatorHost = ConfigurationKey(
        "SIMULATOR_HOST", default: "127.0.0.1", summary: "The address of all ports; 0.0.0.0 in a container.")
    static let apnsPort = ConfigurationKey(
        "SIMULATOR_APNS_PORT", .port, default: "9443", summary: "The port that is APNs' production environment.")
    static let apnsSandboxPort = ConfigurationKey(
        "SIMULATOR_APNS_SANDBOX_PORT", .port, default: "9444", summary: "The port that is APNs' sandbox environment.")
    static let fcmPort = ConfigurationKey(
        "SIMULATOR_FCM_PORT", .port, default: "9445", summary: "The port of FCM and of Google's token endpoint, /token."
    )
    static let controlPort = ConfigurationKey(
        "SIMULATOR_CONTROL_PORT", .port, default: "9480",
        summary: "The port of the control API and the phones, plain HTTP.")
    static let certificateFile = ConfigurationKey(
        "SIMULATOR_CERT_FILE", .file, summary: "The providers' certificate chain (PEM); one is made when absent.")
    static let keyFile = ConfigurationKey(
        "SIMULATOR_KEY_FILE", .file, summary: "The private key (PEM) of SIMULATOR_CERT_FILE.")
    static let authorityFile = ConfigurationKey(
        "SIMULATOR_CA_FILE",
        summary: "Where the authority of a certificate made here is written, for clients to trust; kept over restarts.")
    static let clientAuthorityFile = ConfigurationKey(
        "SIMULATOR_CLIENT_CA_FILE", .file,
        summary: "The authority (PEM) whose client certificates may push to APNs without a provider token.")
    static let logSize = ConfigurationKey(
        "SIMULATOR_LOG_SIZE", .integer(0...10_000_000), default: "100000",
        summary: "How many requests are kept; with 0 they are only counted.")
    static let apnsStreams = ConfigurationKey(
        "SIMULATOR_APNS_STREAMS", .integer(1...100_000), default: "1000",
        summary: "Concurrent streams on an APNs connection after its first accepted push; before that, one.")
    static let tokenScenarios = ConfigurationKey(
        "SIMULATOR_TOKEN_SCENARIOS", .boolean, default: "false",
        summary: "Whether device tokens beginning with 51 play the scenario they spell.")
    static let accessTokenLifetime = ConfigurationKey(
        "SIMULATOR_ACCESS_TOKEN_LIFETIME", .duration(.seconds(1) ... .seconds(86_400)), default: "3599s",
        summary: "How long the access tokens of the token endpoint are good for.")

    static let remoteImages = ConfigurationKey(
        "SIMULATOR_REMOTE_IMAGES", .boolean, default: "false",
        summary: "Whether the phone wall's browser fetches the images that pushes name, from whatever host.")

    /// What the simulator reads besides the common keys.
    static let simulator: [ConfigurationKey] = [
        .simulatorHost, .apnsPort, .apnsSandboxPort, .fcmPort, .controlPort, .certificateFile, .keyFile, .authorityFile,
        .clientAuthorityFile, .logSize, .apnsStreams, .tokenScenarios, .accessTokenLifetime, .remoteImages,
    ]
}
