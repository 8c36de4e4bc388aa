import JWTKit
import Logging
import PushProtocol
import ServiceKit
import TestSupport

@testable import ProviderSimulator

/// The provider simulator in this process, accessed through its ports only: APNs over TLS and HTTP/2, control API
/// over HTTP. Its app `demo` has the test vectors' bundle.
struct SimulatedAPNs: Sendable {
    /// Contains the catalog, the signing key and the simulator's CA.
    let folder: TemporaryFolder
    private let port: Int
    private let sandboxPort: Int
    private let control: SimulatorControl

    var url: String { "https://localhost:\(port)" }
    var sandboxURL: String { "https://localhost:\(sandboxPort)" }
    var authorityFile: String { "\(folder.path)/ca.pem" }
    var catalogFile: String { "\(folder.path)/apps.yaml" }

    /// Runs `body` with a sender and a simulator.
    static func run(_ body: @Sendable (SimulatedAPNs, SenderUnderTest) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try folder.write("key.p8", ES256PrivateKey().pemRepresentation)
        let key = "{ topic: com.example.app, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 }"
        try folder.write("apps.yaml", "apps: { demo: { apns: \(key) } }")
        let apns = SimulatedAPNs(
            folder: folder, port: try FreePort.any(), sandboxPort: try FreePort.any(),
            control: try SimulatorControl())
        let settings = try Settings.load(
            keys: .apps + ConfigurationKey.simulator,
            environment: [
                "HELIOGRAPH_APPS": apns.catalogFile, "SIMULATOR_CA_FILE": apns.authorityFile,
                "SIMULATOR_FCM_PORT": "\(try FreePort.any())", "SIMULATOR_APNS_PORT": "\(apns.port)",
                "SIMULATOR_APNS_SANDBOX_PORT": "\(apns.sandboxPort)",
                "SIMULATOR_WEBPUSH_PORT": "\(try FreePort.any())",
                "SIMULATOR_CONTROL_PORT": "\(apns.control.port)",
            ])
        let context = ServiceContext(
            name: "provider-simulator", settings: settings, logger: .silent, readiness: Readiness())
        try await withServices(try await ProviderSimulatorApp.build(context).services) {
            try await eventually("the simulator is up", within: .seconds(30)) {
                guard context.readiness.report.conditions.allSatisfy({ $0.state == .holds }) else { return false }
                return (try? await apns.requests()) != nil
            }
            let sender = try await SenderUnderTest(
                try AppCatalog.load(path: apns.catalogFile), url: apns.url, sandbox: apns.sandboxURL,
                authorityFile: apns.authorityFile)
            try await body(apns, sender)
            await sender.stop()
        }
    }

    /// Scripts responses to pushes, for `token` or for all; the simulator's README lists the keys.
    func script(_ outcomes: [String: JSONValue]..., token: String? = nil) async throws {
        let list = outcomes.map { outcome in
            var outcome = outcome
            outcome["provider"] = "apns"
            outcome["token"] = token.map(JSONValue.string)
            return JSONValue.object(outcome)
        }
        try await control.script(.array(list))
    }

    /// The received requests, oldest first.
    func requests() async throws -> [JSONValue] { try await control.requests(of: "apns") }
}
