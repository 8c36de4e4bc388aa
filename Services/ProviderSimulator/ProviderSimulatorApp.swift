import FoundationEssentials
import Logging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Simulates APNs, FCM and a push service of browsers for tests, and shows the phones of the demonstration.
@main
struct ProviderSimulatorApp {
    static func main() async {
        await ServiceMain.run(
            "provider-simulator",
            summary: "Simulates APNs, FCM and Web Push for tests, and shows the phones of the demonstration.",
            keys: .apps + ConfigurationKey.simulator, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let identity = try ServerIdentity(context)
        let catalog = try context.apps(using: [.apns, .fcm, .webPush])
        let simulator = Simulator(
            state: try SimulatorState(catalog, context),
            log: RequestLog(capacity: try context.settings.integer(.logSize)))
        let ports = ProviderPorts()
        let faultInjection = FaultInjection()
        func listener(_ port: ProviderPort, _ key: ConfigurationKey) throws -> ProviderListener {
            ProviderListener(
                role: port, simulator: simulator, host: try context.settings.string(.simulatorHost),
                port: try context.settings.integer(key), portKey: key, identity: identity,
                clientAuthorityFile: try context.settings.optionalString(.clientAuthorityFile), ports: ports,
                eventLoopGroup: context.eventLoopGroup, logger: context.logger,
                readiness: context.readiness.condition(port.name, .waiting("not listening yet")))
        }
        return ServiceAssembly([
            ControlServer(
                routes: ControlRoutes(
                    simulator: simulator, readiness: context.readiness, ports: ports, faultInjection: faultInjection,
                    showsRemoteImages: try context.settings.boolean(.remoteImages)),
                host: try context.settings.string(.simulatorHost), port: try context.settings.integer(.controlPort),
                logger: context.logger),
            try listener(.apns(.production), .apnsPort),
            try listener(.apns(.development), .apnsSandboxPort),
            try listener(.google, .fcmPort),
            try listener(.webPush, .webPushPort),
            ConnectionFaultService(faultInjection: faultInjection, simulator: simulator, ports: ports),
            IdleTimeoutService(rateLimits: simulator.state.rateLimits, ports: ports),
            try context.appReloader(catalog, using: [.apns, .fcm, .webPush]) { try simulator.state.keys.add($0) },
        ])
    }
}

extension SimulatorState {
    init(_ catalog: AppCatalog, _ context: ServiceContext) throws {
        self.init(apps: try KnownApps(catalog))
        apnsStreams = try context.settings.integer(.apnsStreams)
        readsTokenPrefixes = try context.settings.boolean(.tokenScenarios)
        let port = try context.settings.integer(.webPushPort)
        webPushOrigin = try context.settings.optionalString(.webPushURL) ?? "https://localhost:\(port)"
        accessTokenLifetime = try context.settings.duration(.accessTokenLifetime).components.seconds
    }
}

extension ServerIdentity {
    init(_ context: ServiceContext) throws {
        let settings = context.settings
        let scratch = FileManager.default.temporaryDirectory.appending(path: "heliograph-\(UUID().uuidString)/ca.pem")
        switch (try settings.optionalString(.certificateFile), try settings.optionalString(.keyFile)) {
        case (let certificate?, let key?):
            try self.init(certificateFile: certificate, keyFile: key, scratch: scratch.path)
        case (nil, nil):
            try self.init(authorityFile: try settings.optionalString(.authorityFile) ?? scratch.path)
            context.logger.info("Made a certificate", metadata: ["authority": "\(authorityFile ?? "")"])
        case (nil, _?), (_?, nil):
            throw ConfigurationError("SIMULATOR_CERT_FILE and SIMULATOR_KEY_FILE go together; set both or neither")
        }
    }
}
