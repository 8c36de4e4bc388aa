import FoundationEssentials
import HTTP2
import Logging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// APNs and FCM as test targets, and as the phones of the demonstration.
@main
struct ProviderSimulatorApp {
    static func main() async {
        await ServiceMain.run(
            "provider-simulator", summary: "APNs and FCM as test targets, and as the phones of the demonstration.",
            keys: .apps + ConfigurationKey.simulator, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let identity = try ServerIdentity(context)
        let simulator = Simulator(
            world: try World(context), log: RequestLog(capacity: try context.settings.integer(.logSize)))
        return ServiceAssembly([
            ControlServer(
                routes: ControlRoutes(simulator: simulator, readiness: context.readiness),
                host: try context.settings.string(.simulatorHost), port: try context.settings.integer(.controlPort),
                logger: context.logger),
            try listener(.apns(.production), .apnsPort, simulator, identity, context),
            try listener(.apns(.development), .apnsSandboxPort, simulator, identity, context),
            try listener(.google, .fcmPort, simulator, identity, context),
        ])
    }

    private static func listener(
        _ role: ProviderListener.Role, _ port: ConfigurationKey, _ simulator: Simulator, _ identity: ServerIdentity,
        _ context: ServiceContext
    ) throws -> ProviderListener {
        ProviderListener(
            role: role, simulator: simulator, host: try context.settings.string(.simulatorHost),
            port: try context.settings.integer(port), portKey: port,
            tls: HTTP2ServerTLS(certificateFile: identity.certificateFile, keyFile: identity.keyFile),
            eventLoopGroup: context.eventLoopGroup, logger: context.logger,
            readiness: context.readiness.condition(role.name, waiting: "not listening yet"))
    }
}

extension World {
    init(_ context: ServiceContext) throws {
        self.init(apps: try KnownApps(try context.apps()))
        apnsStreams = try context.settings.integer(.apnsStreams)
        readsTokenPrefixes = try context.settings.boolean(.tokenScenarios)
        accessTokenLifetime = try context.settings.duration(.accessTokenLifetime).components.seconds
    }
}

extension ServerIdentity {
    init(_ context: ServiceContext) throws {
        let settings = context.settings
        switch (try settings.optionalString(.certificateFile), try settings.optionalString(.keyFile)) {
        case (let certificate?, let key?): self.init(certificateFile: certificate, keyFile: key)
        case (nil, nil):
            let scratch = FileManager.default.temporaryDirectory.appending(
                path: "heliograph-\(UUID().uuidString)/ca.pem")
            try self.init(authorityFile: try settings.optionalString(.authorityFile) ?? scratch.path)
            context.logger.info("Made a certificate", metadata: ["authority": "\(authorityFile ?? "")"])
        case (nil, _?), (_?, nil):
            throw ConfigurationError("SIMULATOR_CERT_FILE and SIMULATOR_KEY_FILE go together; one of them is not set")
        }
    }
}
