import HTTPSFetch
import ServiceConnections
import ServiceKit

extension ConfigurationKey {
    static let consoleHost = ConfigurationKey(
        "CONSOLE_HOST", default: "127.0.0.1",
        summary: "The address that the console listens on; 0.0.0.0 in a container.")
    static let consolePort = ConfigurationKey(
        "CONSOLE_PORT", .port, default: "8083", summary: "The port that the console listens on.")
    static let consoleURL = ConfigurationKey(
        "CONSOLE_URL", .url(schemes: ["https", "http"]), default: "http://127.0.0.1:8083",
        summary: "The address that browsers use. With https, cookies are sent over https only.",
        check: { url, _ in
            HTTPSFetch.problem(with: url, allowsPlainHTTP: false).map { "CONSOLE_URL: \($0)" }
        })
    static let consoleRulesURL = ConfigurationKey(
        "CONSOLE_RULES_URL", .url(schemes: ["https", "http"]), required: true,
        summary: "The address of the HTTP API of rules.", check: plaintextProblem("CONSOLE_RULES_URL"))
    static let consoleRulesKey = ConfigurationKey(
        "CONSOLE_RULES_KEY", required: true, secret: true,
        summary: "The API key for rules, with events:read, counts:read, preferences:read and notifications:revoke.")
    static let consoleRegistryURL = ConfigurationKey(
        "CONSOLE_REGISTRY_URL", .url(schemes: ["https", "http"]), required: true,
        summary: "The address of the HTTP API of token-registry.", check: plaintextProblem("CONSOLE_REGISTRY_URL"))
    static let consoleRegistryKey = ConfigurationKey(
        "CONSOLE_REGISTRY_KEY", required: true, secret: true,
        summary: "The API key for token-registry, with devices:read, devices:deactivate and counts:read.")
    static let consoleServices = ConfigurationKey(
        "CONSOLE_SERVICES", default: "",
        summary: "The admin addresses for the live screen, as name=URL, separated by commas.",
        check: { text, _ in ObservedService.problem(with: text) })
    static let consoleSessionKey = ConfigurationKey(
        "CONSOLE_SESSION_KEY", .longSecret(bytes: 32), required: true, secret: true,
        summary: "The key that signs sessions and support links; the same for all processes of the console.")
    static let consoleSessionTime = ConfigurationKey(
        "CONSOLE_SESSION_TIME", .duration(.seconds(300)...(.seconds(86_400))), default: "8h",
        summary: "How long a sign-in lasts.")
    static let consoleAuditFile = ConfigurationKey(
        "CONSOLE_AUDIT_FILE", required: true,
        summary: "The file that the console appends each action to, one JSON document a line.")
    static let consoleLogin = ConfigurationKey(
        "CONSOLE_LOGIN", .choice(["oidc", "development"]), default: "oidc",
        summary: "oidc, or development: anyone chooses a name and a role. The latter needs a loopback CONSOLE_URL.",
        check: { login, values in
            guard login == "development", let url = values["CONSOLE_URL"], ConsoleAddress(url)?.isLoopback != true
            else { return nil }
            return "CONSOLE_LOGIN: development lets anyone in; use oidc, or set CONSOLE_URL to a loopback address"
        })
    static let consoleIssuer = ConfigurationKey(
        "CONSOLE_OIDC_ISSUER", .url(schemes: ["https", "http"]),
        summary: "The issuer of OpenID Connect, as its discovery document names it.")
    static let consoleClientID = ConfigurationKey(
        "CONSOLE_OIDC_CLIENT_ID", summary: "The id of the console at the issuer.")
    static let consoleClientSecret = ConfigurationKey(
        "CONSOLE_OIDC_CLIENT_SECRET", secret: true, summary: "The secret of the console at the issuer.")
    static let consoleRoleClaim = ConfigurationKey(
        "CONSOLE_OIDC_CLAIM", default: "groups",
        summary: "The claim of the ID token that has a person's roles, as a text or an array of texts.")
    static let consoleCAFile = ConfigurationKey(
        "CONSOLE_CA_FILE", .file,
        summary: "PEM file of CA certificates for the issuer and the APIs; the system's trust store when absent.")

    /// API keys travel over these connections, so other hosts than loopback need TLS.
    private static func plaintextProblem(_ name: String) -> Check {
        { url, values in
            let isAllowed = TransportSecurity.isPlaintextAllowed(values)
            return HTTPSFetch.problem(with: url, allowsPlainHTTP: isAllowed).map {
                "\(name): \($0), or set \(ConfigurationKey.allowPlaintext.name)=yes if the network is trusted"
            }
        }
    }
}

extension [ConfigurationKey] {
    static let console: [ConfigurationKey] =
        .apps + [
            .consoleHost, .consolePort, .consoleURL, .consoleRulesURL, .consoleRulesKey, .consoleRegistryURL,
            .consoleRegistryKey, .consoleServices, .consoleSessionKey, .consoleSessionTime, .consoleAuditFile,
            .consoleLogin, .consoleIssuer, .consoleClientID, .consoleClientSecret, .consoleRoleClaim, .consoleCAFile,
            .allowPlaintext,
        ]
}
