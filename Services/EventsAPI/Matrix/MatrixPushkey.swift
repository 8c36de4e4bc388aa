import Crypto
import Foundation
import PushProtocol

/// The pushkey of a Matrix client's pusher: `<app>.<user>.<signature>`, with the user and the signature in base64url.
///
/// Homeservers do not authenticate to a push gateway, so the pushkey itself must permit pushes to its user. The app's
/// backend signs it for a user who has signed in: HMAC-SHA256 of the part before the last dot, with the key of
/// `EVENTS_API_MATRIX_KEY`.
struct MatrixPushkey: Hashable, Sendable {
    /// The specification's maximum, in bytes.
    static let maximumLength = 512

    let app: AppID
    let user: UserID

    /// Returns nil for a text that the key has not signed.
    init?(_ text: String, key: SymmetricKey) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.maximumLength, parts.count == 3,
            let signature = Data(base64URL: parts[2]),
            HMAC<SHA256>.isValidAuthenticationCode(
                signature, authenticating: Data("\(parts[0]).\(parts[1])".utf8), using: key),
            let app = AppID(rawValue: String(parts[0])),
            let name = Data(base64URL: parts[1]).flatMap({ String(validating: $0, as: UTF8.self) }),
            let user = UserID(rawValue: name)
        else { return nil }
        self.app = app
        self.user = user
    }
}

extension Data {
    /// Decodes base64url (RFC 4648 §5) without padding.
    init?(base64URL text: some StringProtocol) {
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4))
    }
}
