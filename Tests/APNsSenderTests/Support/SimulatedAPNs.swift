import Foundation
import HTTPSFetch
import JWTKit
import Logging
import PushProtocol
import PushSending
import ServiceKit
import ServiceLifecycle
import TestSupport
import Testing
@testable import ProviderSimulator

/// The provider simulator in this process, spoken to over its ports only: APNs over TLS and HTTP/2, its control API over
/// HTTP. It knows the app `demo`, whose bundle is the conformance vectors'.
struct SimulatedAPNs: Sendable {
    /// Where the catalog, the signing key and the simulator's authority lie.
    let folder: TemporaryFolder
    private let port: Int
    private let sandboxPort: Int
    private let control: String
    private let fetch = HTTPSFetch()

    var url: String { "https://localhost:\(port)" }
    var sandboxURL: String { "https://localhost:\(sandboxPort)" }
    var authorityFile: String { "\(folder.path)/ca.pem" }
    var catalogFile: String { "\(folder.path)/apps.yaml" }

    /// Runs `body` with a sender in front of a simulator.
    static func run(_ body: @Sendable (SimulatedAPNs, SenderUnderTest) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try folder.write("key.p8", ES256PrivateKey().pemRepresentation)
        let key = "{ topic: com.example.app, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 }"
        try folder.write("apps.yaml", "apps: { demo: { apns: \(key) } }")
        let apns = SimulatedAPNs(
            folder: folder, port: try FreePort.any(), sandboxPort: try FreePort.any(),
            control: "http://127.0.0.1:\(try FreePort.any())")
        let settings = try Settings.load(
            keys: .apps + ConfigurationKey.simulator,
            environment: [
                "HELIOGRAPH_APPS": apns.catalogFile, "SIMULATOR_CA_FILE": apns.authorityFile,
                "SIMULATOR_FCM_PORT": "\(try FreePort.any())", "SIMULATOR_APNS_PORT": "\(apns.port)",
                "SIMULATOR_APNS_SANDBOX_PORT": "\(apns.sandboxPort)",
                "SIMULATOR_CONTROL_PORT": String(apns.control.split(separator: ":").last ?? ""),
            ])
        let logger = Logger(label: "test.simulator") { _ in SwiftLogNoOpLogHandler() }
        let readiness = Readiness()
        let context = ServiceContext(
            name: "provider-simulator", settings: settings, logger: logger, readiness: readiness)
        let group = ServiceGroup(services: try await ProviderSimulatorApp.build(context).services, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await eventually("the simulator is up", within: .seconds(30)) {
                guard readiness.report.conditions.allSatisfy({ $0.state == .holds }) else { return false }
                return (try? await apns.requests()) != nil
            }
            let sender = try await SenderUnderTest(
                try AppCatalog.load(path: apns.catalogFile), url: apns.url, sandbox: apns.sandboxURL,
                authorityFile: apns.authorityFile)
            try await body(apns, sender)
            await sender.stop()
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    /// What it shall do with pushes; its README lists the keys. `token`: to this one, else to all.
    func script(_ outcomes: [String: JSONValue]..., token: String? = nil) async throws {
        let list = outcomes.map { outcome in
            var outcome = outcome
            outcome["provider"] = "apns"
            outcome["token"] = token.map(JSONValue.string)
            return JSONValue.object(outcome)
        }
        let response = try await fetch.send(
            FetchRequest(
                method: "POST", url: "\(control)/outcomes", headers: [("content-type", "application/json")],
                body: JSONText.bytes(of: .array(list))))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
    }

    /// What came, oldest first.
    func requests() async throws -> [JSONValue] {
        let response = try await fetch.send(FetchRequest(url: "\(control)/apns/requests"))
        return try #require(
            try WireCoding.decode(JSONValue.self, from: response.body, maximumSize: 1 << 20)["requests"]?.array)
    }
}
