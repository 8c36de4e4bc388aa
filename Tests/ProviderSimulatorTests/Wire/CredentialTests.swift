import Crypto
import CryptoExtras
import Foundation
import PushProtocol
import ServiceKit
import Testing

@testable import ProviderSimulator

@Suite struct CredentialTests {
    static func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "simulator-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    static func catalog(_ folder: URL, key: String? = nil, account: String? = nil) throws -> AppCatalog {
        let keyFile = folder.appending(path: "key.p8")
        let accountFile = folder.appending(path: "account.json")
        try (key ?? Signing.apnsKey.pemRepresentation).write(to: keyFile, atomically: true, encoding: .utf8)
        let known: JSONValue = [
            "type": "service_account", "project_id": "demo-project", "private_key_id": "key-1",
            "client_email": .string(Fixture.account), "private_key": .string(Signing.accountKey.pemRepresentation),
        ]
        try (account.map { Data($0.utf8) } ?? Data(Fixture.json(known))).write(to: accountFile)
        return AppCatalog([
            AppConfiguration(
                id: AppID(rawValue: "demo")!,
                apns: APNsAppConfiguration(
                    topic: Fixture.bundle, keyID: Fixture.keyID, teamID: Fixture.teamID, keyFile: keyFile.path),
                fcm: FCMAppConfiguration(serviceAccountFile: accountFile.path)),
            AppConfiguration(id: AppID(rawValue: "unconfigured")!),
        ])
    }

    @Test func `the catalog's public keys are accepted`() throws {
        try Self.withFolder { folder in
            let apps = try KnownApps(try Self.catalog(folder))
            let simulator = Simulator(state: SimulatorState(apps: apps))
            #expect(simulator.push()?.status == 200)
            #expect(
                TokenEndpointTests.ask(
                    Signing.rs256(TokenEndpointTests.header, TokenEndpointTests.claims), simulator)?.status == 200)
            #expect(apps.projects == ["demo-project"])
        }
    }

    @Test func `an app that is added is accepted, and a contradicting one changes nothing`() throws {
        try Self.withFolder { folder in
            let simulator = Simulator(state: SimulatorState(apps: KnownApps()))
            #expect(simulator.push()?.status != 200)
            let app = try #require(try Self.catalog(folder).apps.first)
            try simulator.state.keys.add(app)
            try simulator.state.keys.add(app)
            #expect(simulator.push()?.status == 200)
            let impostor = try #require(
                try Self.catalog(folder, key: P256.Signing.PrivateKey().pemRepresentation).apps.first)
            #expect(throws: ConfigurationError.self) { try simulator.state.keys.add(impostor) }
            #expect(simulator.push()?.status == 200)
        }
    }

    @Test func `an invalid credential is rejected with its file name`() throws {
        try Self.withFolder { folder in
            for (key, account) in [("nonsense", nil), (nil, "{}"), (nil, "nonsense")] as [(String?, String?)] {
                let catalog = try Self.catalog(folder, key: key, account: account)
                let error = #expect(throws: ConfigurationError.self) { try KnownApps(catalog) }
                #expect(error?.description.hasPrefix(folder.path) == true)
            }
        }
    }

    @Test func `a certificate is reused after a restart, and replaced when incomplete or about to expire`() throws {
        try Self.withFolder { folder in
            let file = folder.appending(path: "ca.pem").path
            func authority() throws -> String { try String(contentsOfFile: file, encoding: .utf8) }
            let identity = try ServerIdentity(authorityFile: file)
            let first = try authority()
            let permissions = try FileManager.default.attributesOfItem(atPath: identity.keyFile)[.posixPermissions]
            #expect(permissions as? Int == 0o600)
            _ = try ServerIdentity(authorityFile: file)
            #expect(try authority() == first)
            _ = try ServerIdentity(authorityFile: file, at: Date().addingTimeInterval(10 * 365 * 86_400))
            let second = try authority()
            #expect(second != first)
            try FileManager.default.removeItem(atPath: identity.keyFile)
            _ = try ServerIdentity(authorityFile: file)
            #expect(try authority() != second)
        }
    }

    @Test func `an error names a folder that cannot be written`() {
        #expect(throws: (any Error).self) { try ServerIdentity(authorityFile: "/dev/null/ca.pem") }
    }
}
