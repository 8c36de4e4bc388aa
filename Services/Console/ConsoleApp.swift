import HTTPAuth
import HTTPSFetch
import Logging
import PushProtocol
import ServiceConnections
import ServiceKit

/// Pages for support and operators: why a person did or did not get a notification, and the state of the services. Reads
/// and acts through the operators' HTTP APIs, and has no database.
@main
struct ConsoleApp {
    static func main() async {
        await ServiceMain.run(
            "console", summary: "Shows operators why people did or did not get a notification.", keys: .console,
            build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let settings = context.settings
        let catalog = try context.apps(using: [])
        let apps = ActiveApps(catalog)
        let caFile = try settings.optionalString(.consoleCAFile)
        let fetch = HTTPSFetch(
            caFile: caFile, timeout: .seconds(10), maximumResponseSize: 8 << 20,
            allowsPlainHTTP: try settings.boolean(.allowPlaintext), connectionsPerHost: 16)
        // Admin ports are in the operator's own network, and their answers have no secrets.
        let adminFetch = HTTPSFetch(
            caFile: caFile, timeout: .seconds(3), maximumResponseSize: 8 << 20, allowsPlainHTTP: true)
        guard let address = ConsoleAddress(try settings.string(.consoleURL)) else {
            throw ConfigurationError("CONSOLE_URL: it needs a scheme and a host, and no path")
        }
        let secret = try settings.string(.consoleSessionKey)
        let routes = ConsoleRoutes(
            frame: ConsoleFrame(
                keeper: SessionKeeper(
                    secret: secret, address: address, lifetime: try settings.duration(.consoleSessionTime)),
                audit: try AuditLog(path: try settings.string(.consoleAuditFile))),
            signIn: try signIn(settings, address, caFile: caFile, logger: context.logger),
            rules: OperatorAPI(
                service: "rules", address: try settings.string(.consoleRulesURL),
                key: try settings.string(.consoleRulesKey), fetch: fetch),
            registry: OperatorAPI(
                service: "token-registry", address: try settings.string(.consoleRegistryURL),
                key: try settings.string(.consoleRegistryKey), fetch: fetch),
            links: Seal(secret: secret, purpose: .supportLink),
            services: ObservedService.list(try settings.string(.consoleServices)) ?? [], adminFetch: adminFetch,
            apps: { apps.sorted })
        let reloader = try context.appReloader(catalog, using: []) { app in apps.insert(app) }
        return ServiceAssembly([reloader, try context.server(routes.router, host: .consoleHost, port: .consolePort)])
    }

    private static func signIn(
        _ settings: Settings, _ address: ConsoleAddress, caFile: String?, logger: Logger
    ) throws(ConfigurationError) -> SignInRoutes.Method {
        guard try settings.string(.consoleLogin) == "oidc" else { return .development }
        guard let issuer = try settings.optionalString(.consoleIssuer),
            let client = try settings.optionalString(.consoleClientID),
            let secret = try settings.optionalString(.consoleClientSecret)
        else {
            throw ConfigurationError(
                "CONSOLE_LOGIN: oidc needs CONSOLE_OIDC_ISSUER, CONSOLE_OIDC_CLIENT_ID and CONSOLE_OIDC_CLIENT_SECRET")
        }
        return .provider(
            OpenIDProvider(
                issuer: issuer, clientID: client, clientSecret: secret,
                roleClaim: try settings.string(.consoleRoleClaim), callback: "\(address.origin)/sign-in/callback",
                fetch: BearerVerifier.fetch(caFile: caFile), logger: logger))
    }
}
