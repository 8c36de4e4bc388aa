import Logging
import PushProtocol
import ServiceKit
import TestSupport

@testable import ProviderSimulator

/// The provider simulator in this process, accessed through its ports only: FCM and the token endpoint over TLS and
/// HTTP/2, control API over HTTP.
struct SimulatedGoogle: Sendable {
    /// Contains the catalog, the service account and the simulator's CA.
    let folder: CatalogFolder
    let port: Int
    private let control: SimulatorControl

    var url: String { "https://localhost:\(port)" }
    var authorityFile: String { folder.path("ca.pem") }

    /// Runs `body` with a simulator that knows the accounts of `folder`.
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
                "SIMULATOR_WEBPUSH_PORT": "\(try FreePort.any())",
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

    /// Scripts responses; the simulator's README lists the keys.
    func script(_ outcomes: JSONValue) async throws { try await control.script(outcomes) }

    /// Sets the known tokens and their members in a message; the simulator's README lists the keys.
    func pin(_ tokens: JSONValue) async throws { try await control.pin(tokens) }

    /// Removes all scripts and recorded requests.
    func forget() async throws {
        for path in ["outcomes", "requests"] { try await control.delete(path) }
    }

    /// Revokes all granted access tokens.
    func revokeAccessTokens() async throws { try await control.delete("access-tokens") }

    /// The received messages, oldest first.
    func sends() async throws -> [JSONValue] { try await control.requests(of: "fcm") }

    /// The requests to the token endpoint, oldest first.
    func grants() async throws -> [JSONValue] { try await control.requests(of: "oauth") }
}
