import Logging
import PushProtocol
import ServiceKit
import TestSupport
@testable import ProviderSimulator

/// The provider simulator in this process, spoken to over its ports only: FCM and the token endpoint over TLS and
/// HTTP/2, its control API over HTTP.
struct SimulatedGoogle: Sendable {
    /// Where the catalog, the service account and the simulator's authority lie.
    let folder: CatalogFolder
    let port: Int
    private let control: SimulatorControl

    var url: String { "https://localhost:\(port)" }
    var authorityFile: String { folder.path("ca.pem") }

    /// Runs `body` in front of a simulator that knows the accounts of `folder`.
    static func run(
        _ folder: CatalogFolder? = nil, _ body: @Sendable (SimulatedGoogle) async throws -> Void
    ) async throws {
        let folder = try folder ?? CatalogFolder()
        let google = SimulatedGoogle(folder: folder, port: try FreePort.any(), control: try SimulatorControl())
        let settings = try Settings.load(
            keys: .apps + ConfigurationKey.simulator,
            environment: [
                "HELIOGRAPH_APPS": folder.catalogFile, "SIMULATOR_CA_FILE": google.authorityFile,
                "SIMULATOR_FCM_PORT": "\(google.port)", "SIMULATOR_APNS_PORT": "\(try FreePort.any())",
                "SIMULATOR_APNS_SANDBOX_PORT": "\(try FreePort.any())",
                "SIMULATOR_CONTROL_PORT": "\(google.control.port)",
            ])
        let context = ServiceContext(
            name: "provider-simulator", settings: settings, logger: .silent, readiness: Readiness())
        try await withServices(try await ProviderSimulatorApp.build(context).services) {
            try await eventually("the simulator is up", within: .seconds(30)) {
                guard context.readiness.report.conditions.allSatisfy({ $0.state == .holds }) else { return false }
                return (try? await google.sends()) != nil
            }
            try await body(google)
        }
    }

    /// What the simulator shall do; its README lists the keys.
    func script(_ outcomes: JSONValue) async throws { try await control.script(outcomes) }

    /// Which tokens exist, and in which member of a message; its README lists the keys.
    func pin(_ tokens: JSONValue) async throws { try await control.pin(tokens) }

    /// Ends every script and forgets every request.
    func forget() async throws {
        for path in ["outcomes", "requests"] { try await control.delete(path) }
    }

    /// Every access token that was granted is of no use any more.
    func revokeAccessTokens() async throws { try await control.delete("access-tokens") }

    /// What came for messages, oldest first.
    func sends() async throws -> [JSONValue] { try await control.requests(of: "fcm") }

    /// The calls of the token endpoint, oldest first.
    func grants() async throws -> [JSONValue] { try await control.requests(of: "oauth") }
}
