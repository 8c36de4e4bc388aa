package import Foundation
package import HTTPAuth
package import JWTKit
package import PushProtocol
package import ServiceKit
internal import Logging

/// Two apps that accept bearer tokens: `shared` with an HS256 secret, `signed` with an ES256 key, in separate files. The
/// publishers of `shared` use the same secret, issuer and audience as its users.
package struct BearerKeys: Sendable {
    /// The time of verification.
    package static let now = Date(timeIntervalSince1970: 1_767_225_600)
    package static let secret = "a-shared-secret-of-thirty-two-bytes-at-least"

    package let folder: URL
    package let ecdsa = ES256PrivateKey()

    package init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "bearer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("\(Self.secret)\n".utf8).write(to: folder.appending(path: "secret"))
        try Data(ecdsa.publicKey.pemRepresentation.utf8).write(to: folder.appending(path: "public.pem"))
    }

    package func remove() { try? FileManager.default.removeItem(at: folder) }

    package var catalog: AppCatalog { catalog(of: AppID(rawValue: "shared")!) }

    /// - Parameter app: The app of the secret.
    package func catalog(of app: AppID) -> AppCatalog {
        AppCatalog([
            AppConfiguration(
                id: app,
                bearer: [secretVerification], publishers: [secretVerification]),
            AppConfiguration(
                id: AppID(rawValue: "signed")!,
                bearer: [
                    BearerVerification(
                        algorithm: .es256, keys: .file(folder.appending(path: "public.pem").path), userClaim: "uid")
                ]),
        ])
    }

    private var secretVerification: BearerVerification {
        BearerVerification(
            algorithm: .hs256, keys: .file(folder.appending(path: "secret").path), issuer: "issuer", audience: "push")
    }

    /// A verifier at ``now``.
    ///
    /// - Parameter app: The app of the secret.
    package func verifier(
        for app: AppID = AppID(rawValue: "shared")!, of holder: TokenHolder = .user
    ) async throws -> BearerVerifier {
        try await BearerVerifier(catalog(of: app), of: holder, now: { BearerKeys.now }, logger: .silent)
    }

    private static let good: [String: JSONValue] = [
        "sub": "456", "iss": "issuer", "aud": "push", "exp": .int(Int64(now.timeIntervalSince1970) + 60),
    ]

    /// A token of the app `shared` for the user 456, with `changes` to its claims. A nil claim is removed.
    package static func shared(_ changes: [String: JSONValue?], secret: String = secret) async throws -> String {
        let claims = good.merging(changes.compactMapValues { $0 }) { $1 }.filter {
            changes[$0.key, default: .null] != nil
        }
        return try await Issuer.hmac(secret).token(.object(claims))
    }
}
