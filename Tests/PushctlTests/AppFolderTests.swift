import ArgumentParser
import Foundation
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import Pushctl

/// `pushctl app new`, `check` and `install`.
@Suite struct AppFolderTests {
    private let place: TemporaryFolder

    init() throws { place = try TemporaryFolder() }

    private var folder: String { "\(place.path)/my-app" }

    /// Runs `pushctl app new` with generated credentials.
    @discardableResult
    private func make(_ name: String = "my-app", _ options: String...) async throws -> String {
        let folder = "\(place.path)/\(name)"
        let command = try AppNewCommand.parse([name, "--folder", folder, "--simulated"] + options)
        try await command.run()
        return folder
    }

    private func findings(real: Bool = false) async -> [String] {
        var check = AppFolderCheck(folder: folder, needsRealCredentials: real)
        await check.run()
        return check.findings
    }

    /// Replaces text in a file of the folder.
    private func edit(_ file: String, _ old: String, _ new: String) throws {
        let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
        #expect(text.contains(old))
        try Data(text.replacing(old, with: new).utf8).write(to: URL(filePath: "\(folder)/\(file)"))
    }

    @Test func `a new folder is complete, has no mistakes, and each example event notifies someone`() async throws {
        try await make()
        var check = AppFolderCheck(folder: folder)
        await check.run()
        #expect(check.findings == [])
        #expect(check.notes.contains { $0.contains("message-sent.json: sam: message: push") }, "\(check.notes)")
        #expect(check.notes.contains { $0.contains("task-planned.json: sam: reminder: hold") }, "\(check.notes)")
        let catalog = try AppCatalog.load(path: "\(folder)/apps.yaml")
        #expect(catalog.ids.map(\.rawValue) == ["my-app"])
        #expect(catalog.apps.first?.apns?.topic == "com.example.my-app" && catalog.apps.first?.fcm != nil)
    }

    @Test func `only the owner can read the credentials`() async throws {
        try await make()
        for name in ["apns.p8", "service-account.json", "bearer.secret"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/credentials/\(name)")
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
        }
    }

    @Test func `an existing folder is not changed`() async throws {
        try await make()
        let before = try String(contentsOfFile: "\(folder)/credentials/bearer.secret", encoding: .utf8)
        await #expect(throws: CommandError.self) { try await make() }
        #expect(try String(contentsOfFile: "\(folder)/credentials/bearer.secret", encoding: .utf8) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["my-app"])
    }

    @Test func `flags alone make an app with its own key, whose id comes from the file's name`() async throws {
        try await make("other")
        let key = try String(contentsOfFile: "\(place.path)/other/credentials/apns.p8", encoding: .utf8)
        let path = try place.write("AuthKey_ABCDE12345.p8", key)
        try await make(
            "my-app", "--bundle-id", "com.acme.app", "--team-id", "FGHIJ67890", "--key-file", path)
        let app = try #require(try AppCatalog.load(path: "\(folder)/apps.yaml").apps.first)
        #expect(app.fcm == nil && app.apns?.topic == "com.acme.app")
        guard case .key(let credential)? = app.apns?.credential else { throw CommandError("no key") }
        #expect(credential.keyID == "ABCDE12345" && credential.teamID == "FGHIJ67890")
        #expect(await findings(real: true) == [])
    }

    @Test(arguments: [
        (["--key-file", "/nowhere.p8"], "--bundle-id"),
        (["--key-id", "ABCDE12345"], "--key-file"),
        (["--bundle-id", "not a bundle"], "bundle id"),
        (["--bundle-id", "a.b", "--key-file", "/nowhere.p8", "--key-id", "ABCDE12345"], "--team-id"),
        (
            ["--bundle-id", "a.b", "--key-file", "/nowhere.p8", "--key-id", "short", "--team-id", "FGHIJ67890"],
            "--key-id"
        ),
        (["--service-account", "/nowhere.json"], "/nowhere.json"),
    ])
    func `a wrong or missing answer is named, and nothing is written`(options: [String], name: String) async throws {
        let command = try AppNewCommand.parse(["my-app", "--folder", folder, "--simulated"] + options)
        let error = await #expect(throws: CommandError.self) { try await command.run() }
        #expect(error?.description.contains(name) == true, "\(error?.description ?? "")")
        #expect(!FileManager.default.fileExists(atPath: folder))
    }

    @Test func `two generated apps have different key ids`() {
        let ids = ["one", "two", "my-app"].compactMap { NewApp.simulatedKeyID(of: .init(rawValue: $0)!) }
        #expect(Set(ids).count == 3 && ids.allSatisfy { $0.wholeMatch(of: /[A-Z0-9]{10}/) != nil })
    }

    @Test func `generated credentials are findings for real providers`() async throws {
        try await make()
        let findings = await findings(real: true)
        #expect(findings.count == 2)
        #expect(
            findings.contains { $0.contains("apps.yaml:7:") && $0.contains("APNs key is generated") }, "\(findings)")
        #expect(findings.contains { $0.contains("service-account.json:1:") }, "\(findings)")
    }

    @Test func `each mistake is found with its file and line`() async throws {
        try await make()
        try edit("apps.yaml", "topic:", "topik:")
        #expect(await findings().first?.contains("apps.yaml:6: apps.my-app.apns.topik: unknown key") == true)
        try edit("apps.yaml", "topik:", "topic:")
        try edit("rules/my-app.yaml", "users: owner.id", "users: owner.idd")
        #expect(await findings().contains { $0.contains("/rules/my-app.yaml:") })
        try edit("rules/my-app.yaml", "users: owner.idd", "users: owner.id")
        try edit("events/message-sent.json", "message.sent", "message.snt")
        #expect(await findings().contains { $0.contains("message-sent.json:1:") && $0.contains("message.snt") })
        try edit("events/message-sent.json", "message.snt", "message.sent")
        try edit("events/message-sent.json", #""sam", "alex""#, "")
        #expect(await findings().contains { $0.contains("message-sent.json:1: no rule notifies anyone") })
        try edit("events/message-sent.json", "[]", #"["sam"]"#)
        #expect(await findings() == [])
        for name in ["apns.p8", "service-account.json"] {
            try Data("nonsense".utf8).write(to: URL(filePath: "\(folder)/credentials/\(name)"))
            #expect(await findings().contains { $0.contains("credentials/\(name):1:") }, "\(name)")
        }
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: "\(folder)/credentials/bearer.secret")
        #expect(await findings().contains { $0.contains("bearer.secret:1:") && $0.contains("chmod 600") })
        try FileManager.default.removeItem(atPath: "\(folder)/apps.yaml")
        #expect(await findings().contains { $0.contains("apps.yaml") && $0.contains("cannot be read") })
    }

    @Test func `a webhook to a private address, and an invalid secret, are findings`() async throws {
        try await make()
        let secret = "\(folder)/credentials/crm.secrets"
        try Data("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n".utf8).write(to: URL(filePath: secret))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
        let before = try String(contentsOfFile: "\(folder)/apps.yaml", encoding: .utf8)
        func add(_ url: String) throws {
            let webhook = "      - { name: crm, url: \"\(url)\", secret-file: credentials/crm.secrets }\n"
            let text = before.hasSuffix("\n") ? before : before + "\n"
            try Data("\(text)    webhooks:\n\(webhook)".utf8).write(to: URL(filePath: "\(folder)/apps.yaml"))
        }
        try add("https://crm.example/heliograph")
        #expect(await findings() == [])
        try add("https://192.168.1.1/")
        #expect(
            await findings().first?.contains("the webhook crm is refused: 192.168.1.1 is a private address") == true)
        try add("https://crm.example/heliograph")
        try Data("password".utf8).write(to: URL(filePath: secret))
        let found = await findings()
        #expect(found.count == 1 && found[0].hasPrefix("\(secret):1: a webhook's secret is whsec_"), "\(found)")
        #expect(!found.joined().contains("password"))
    }

    @Test func `a rule file without its app is a finding`() async throws {
        try await make()
        try await make("other")
        try FileManager.default.copyItem(
            atPath: "\(place.path)/other/rules/other.yaml", toPath: "\(folder)/rules/other.yaml")
        #expect(await findings().contains { $0.contains("rules/other.yaml:1:") && $0.contains("has no app other") })
    }

    @Test(arguments: [true, false])
    func `installed apps keep the others, and are read with the same content`(copies: Bool) async throws {
        try await make()
        let deployment = "\(place.path)/deployment"
        try FileManager.default.createDirectory(atPath: deployment, withIntermediateDirectories: true)
        try place.write("key", "0123456789abcdef0123456789abcdef")
        try place.write(
            "deployment/apps.yaml",
            """
            apps:
              kept:
                bearer:
                  - { algorithm: HS256, key-file: ../key, app-claim: azp, app-value: ios, leeway: 60s }
                  - { algorithm: ES256, jwks-url: "https://a.example/keys", audience: push }
                publishers:
                  - { algorithm: HS256, key-file: ../key, audience: events }
                web-origins: ["https://portal.example", "http://localhost:3000"]
                events-to: [courier]
                recording: { days: 14, at-most: 500 }
                reports: { queue: true }
                webhooks:
                  - { name: crm, url: "https://crm.example/x?a=%22b", secret-file: ../key, events: [receipt, delivery] }
                  - { name: all, url: "https://crm.example:8443/", secret-file: ../key }
            """)
        let before = try AppCatalog.load(path: "\(deployment)/apps.yaml")
        var options = [folder, "--apps-file", "\(deployment)/apps.yaml", "--rules", "\(deployment)/rules"]
        if copies { options.append("--copy") }
        for _ in 1...2 { try await AppCommand.Install.parse(options).run() }
        let after = try AppCatalog.load(path: "\(deployment)/apps.yaml")
        #expect(after.ids.map(\.rawValue) == ["kept", "my-app"])
        #expect(after.apps.first?.bearer.map(\.appClaim) == before.apps.first?.bearer.map(\.appClaim))
        #expect(after.apps.first?.bearer.map(\.leeway) == before.apps.first?.bearer.map(\.leeway))
        #expect(after.apps.first?.publishers.map(\.audience) == ["events"])
        #expect(after.apps.first?.webOrigins == ["https://portal.example", "http://localhost:3000"])
        #expect(after.apps.first?.eventBorrowers == [AppID(rawValue: "courier")!])
        #expect(after.apps.first?.recording == RecordingTerms(days: 14, limit: 500))
        #expect(after.apps.first?.webhooks == before.apps.first?.webhooks)
        #expect(after.reportConsumers == before.reportConsumers && after.reportConsumers.upstreams.count == 1)
        guard case .key(let key)? = after.apps.last?.apns?.credential else { throw CommandError("no key") }
        #expect(key.keyFile.hasPrefix(copies ? "\(deployment)/app-credentials/my-app/" : "\(folder)/credentials/"))
        let rules = try String(contentsOfFile: "\(deployment)/rules/my-app.yaml", encoding: .utf8)
        #expect(rules == (try String(contentsOfFile: "\(folder)/rules/my-app.yaml", encoding: .utf8)))
    }
}
