import Crypto
import CryptoExtras
import Foundation
import PushProtocol
import PushSending

/// Writes the folder of a new app. The folder appears only when it is complete.
struct AppFolderWriter {
    let new: NewApp
    /// The content of the APNs key; `nil` generates one.
    var apnsKey: Data?
    /// The content of the service account's key file; `nil` generates one.
    var serviceAccount: Data?

    /// - Throws: if `folder` exists or cannot be written.
    func write(to folder: String) throws {
        let files = FileManager.default
        let target = URL(filePath: folder)
        guard !files.fileExists(atPath: target.path) else {
            throw CommandError("\(folder) exists; choose another folder with --folder, or delete it")
        }
        let draft = target.deletingLastPathComponent()
            .appending(path: ".\(target.lastPathComponent).\(UUID().uuidString)")
        defer { try? files.removeItem(at: draft) }
        do {
            try files.createDirectory(at: draft, withIntermediateDirectories: true)
            for name in ["rules", "events"] {
                try files.createDirectory(at: draft.appending(path: name), withIntermediateDirectories: false)
            }
            try files.createDirectory(
                at: draft.appending(path: "credentials"), withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700])
        } catch {
            throw CommandError("\(folder): cannot be created: \(error.localizedDescription)")
        }
        func add(_ path: String, _ content: Data, mode: Int = 0o644) throws {
            let path = draft.appending(path: path).path
            guard files.createFile(atPath: path, contents: content, attributes: [.posixPermissions: mode]) else {
                throw CommandError("\(path): cannot be written")
            }
        }
        if new.apns != nil {
            let generated = { Data(P256.Signing.PrivateKey().pemRepresentation.utf8) }
            try add("credentials/apns.p8", apnsKey ?? generated(), mode: 0o600)
        }
        if new.hasFCM {
            try add(
                "credentials/service-account.json", serviceAccount ?? Self.generatedAccount(of: new.app), mode: 0o600)
        }
        try add("credentials/bearer.secret", Data("\(Self.secret())\n".utf8), mode: 0o600)
        try add("apps.yaml", Data(new.appsFile.utf8))
        try add("rules/\(new.app).yaml", Data(new.ruleFile.utf8))
        for (file, text) in new.exampleEvents { try add("events/\(file)", Data(text.utf8)) }
        try add("README.md", Data(new.readme(folder: target.lastPathComponent).utf8))
        try add(".gitignore", Data(NewApp.gitignore.utf8))
        do {
            try files.moveItem(at: draft, to: target)
        } catch {
            throw CommandError("\(folder): cannot be created: \(error.localizedDescription)")
        }
    }

    /// 32 random bytes in hexadecimal digits.
    private static func secret() -> String {
        SymmetricKey(size: .bits256).withUnsafeBytes { bytes in
            bytes.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
        }
    }

    private static func generatedAccount(of app: AppID) throws -> Data {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let members: [String: JSONValue] = [
            "type": .string("service_account"), "project_id": .string("\(app)"),
            "private_key_id": .string("simulated-\(app)"), "private_key": .string(key.pkcs8PEMRepresentation),
            "client_email": .string("\(app)@\(NewApp.simulatedDomain)"), "token_uri": .string(OAuthGrant.audience),
        ]
        return Data(try WireCoding.encode(JSONValue.object(members)))
    }
}
