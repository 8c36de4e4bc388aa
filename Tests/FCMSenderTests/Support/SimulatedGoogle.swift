import Foundation
import HTTPSFetch
import Logging
import PushProtocol
import PushSending
import ServiceKit
import ServiceLifecycle
import TestSupport
import Testing
@testable import ProviderSimulator

/// The provider simulator in this process, spoken to over its ports only: FCM and the token endpoint over TLS and
/// HTTP/2, its control API over HTTP.
struct SimulatedGoogle: Sendable {
    /// Where the catalog, the service account and the simulator's authority lie.
    let folder: CatalogFolder
    let port: Int
    private let control: String
    private let fetch = HTTPSFetch()

    var url: String { "https://localhost:\(port)" }
    var authorityFile: String { folder.url.appending(path: "ca.pem").path() }

    /// Runs `body` in front of a simulator that knows the project `demo-project`.
    static func run(_ body: @Sendable (SimulatedGoogle) async throws -> Void) async throws {
        let folder = try CatalogFolder()
        defer { folder.remove() }
        let google = SimulatedGoogle(
            folder: folder, port: try FreePort.any(), control: "http://127.0.0.1:\(try FreePort.any())")
        let settings = try Settings.load(
            keys: .apps + ConfigurationKey.simulator,
            environment: [
                "HELIOGRAPH_APPS": folder.catalogFile, "SIMULATOR_CA_FILE": google.authorityFile,
                "SIMULATOR_FCM_PORT": "\(google.port)", "SIMULATOR_APNS_PORT": "\(try FreePort.any())",
                "SIMULATOR_APNS_SANDBOX_PORT": "\(try FreePort.any())",
                "SIMULATOR_CONTROL_PORT": String(google.control.split(separator: ":").last ?? ""),
            ])
        let logger = Logger(label: "test.simulator") { _ in SwiftLogNoOpLogHandler() }
        let readiness = Readiness()
        let context = ServiceContext(
            name: "provider-simulator", settings: settings, logger: logger, readiness: readiness)
        let assembly = try await ProviderSimulatorApp.build(context)
        let group = ServiceGroup(services: assembly.services, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await eventually("the simulator is up", within: .seconds(30)) {
                try readiness.report.conditions.allSatisfy { $0.state == .holds } && google.isListening()
            }
            try await body(google)
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    private func isListening() throws -> Bool { FileManager.default.fileExists(atPath: authorityFile) }

    /// What the simulator shall do; its README lists the keys.
    func script(_ outcomes: JSONValue) async throws {
        let response = try await fetch.send(
            FetchRequest(
                method: "POST", url: "\(control)/outcomes", headers: [("content-type", "application/json")],
                body: JSONText.bytes(of: outcomes)))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
    }

    /// Ends every script and forgets every request.
    func forget() async throws {
        for path in ["outcomes", "requests"] {
            _ = try await fetch.send(FetchRequest(method: "DELETE", url: "\(control)/\(path)"))
        }
    }

    /// Every access token that was granted is of no use any more.
    func revokeAccessTokens() async throws {
        _ = try await fetch.send(FetchRequest(method: "DELETE", url: "\(control)/access-tokens"))
    }

    /// What came for messages, oldest first.
    func sends() async throws -> [JSONValue] { try await requests(of: "fcm") }

    /// The calls of the token endpoint, oldest first.
    func grants() async throws -> [JSONValue] { try await requests(of: "oauth") }

    private func requests(of party: String) async throws -> [JSONValue] {
        let response = try await fetch.send(FetchRequest(url: "\(control)/\(party)/requests"))
        let answer = try JSONDecoder().decode(JSONValue.self, from: Data(response.body))
        return try #require(answer["requests"]?.array)
    }
}
