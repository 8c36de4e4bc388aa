import JWTKit
import PushProtocol
import ServiceKit
import TestSupport

/// App catalogs with credentials of the test.
struct AppCatalogs {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        for name in ["key.p8", "other.p8"] { try folder.write(name, ES256PrivateKey().pemRepresentation) }
    }

    /// The test vectors' app with a signing key.
    func key(_ more: String = "") throws -> AppCatalog {
        try load(
            "demo: { apns: { topic: com.example.app, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 } }",
            more)
    }

    /// The test vectors' app with a production certificate.
    func certificate(_ certificateFile: String, key: String) throws -> AppCatalog {
        try load(
            """
            demo:
                apns:
                  topic: com.example.app
                  certificates: { production: { certificate-file: \(certificateFile), key-file: \(key) } }
            """)
    }

    var file: String { "\(folder.path)/apps.yaml" }

    func load(_ apps: String...) throws -> AppCatalog {
        let text = "apps:\n" + apps.filter { !$0.isEmpty }.map { "  \($0)\n" }.joined()
        return try AppCatalog.load(path: try folder.write("apps.yaml", text))
    }
}
