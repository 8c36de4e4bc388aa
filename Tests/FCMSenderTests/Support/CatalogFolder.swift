import Providers
import PushProtocol
import PushSending
import TestSupport

/// A folder with an app catalog and service accounts, deleted with this value.
struct CatalogFolder: Sendable {
    private let folder: TemporaryFolder

    /// Contains one app, `demo`, and its account.
    init() throws {
        folder = try TemporaryFolder()
        try writeAccount()
        try folder.write("apps.yaml", "apps: { demo: { fcm: { service-account-file: account.json } } }")
    }

    /// Contains `apps`, the members of the catalog.
    init(apps: String) throws {
        folder = try TemporaryFolder()
        try folder.write("apps.yaml", "apps:\n\(apps)")
    }

    var catalogFile: String { path("apps.yaml") }
    var accountFile: String { path("account.json") }

    func path(_ name: String) -> String { "\(folder.path)/\(name)" }

    /// Writes a service account's key file.
    func writeAccount(project: String = "demo-project", name: String = "push", to file: String = "account.json") throws
    {
        let account: JSONValue = [
            "project_id": .string(project), "private_key_id": "key-1", "private_key": .string(TestKey.rsa),
            "client_email": .string("\(name)@demo-project.example"),
        ]
        try write(JSONText.bytes(of: account), to: file)
    }

    func write(_ account: [UInt8], to file: String = "account.json") throws {
        try folder.write(file, String(decoding: account, as: UTF8.self))
    }
}
