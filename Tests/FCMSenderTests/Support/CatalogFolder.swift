import Foundation
import PushProtocol
import PushSending

/// A folder with the catalog of one app, `demo`, and its service account.
struct CatalogFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try writeAccount()
        try Data("apps: { demo: { fcm: { service-account-file: account.json } } }".utf8)
            .write(to: URL(filePath: catalogFile))
    }

    var catalogFile: String { url.appending(path: "apps.yaml").path() }
    var accountFile: String { url.appending(path: "account.json").path() }

    /// Writes the key file as it is downloaded.
    func writeAccount(project: String = "demo-project") throws {
        let account: JSONValue = [
            "project_id": .string(project), "private_key_id": "key-1", "private_key": .string(TestKey.rsa),
            "client_email": "push@demo-project.example",
        ]
        try write(JSONText.bytes(of: account))
    }

    func write(_ account: [UInt8]) throws { try Data(account).write(to: URL(filePath: accountFile)) }

    func remove() { try? FileManager.default.removeItem(at: url) }
}
