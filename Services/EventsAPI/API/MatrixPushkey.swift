import Crypto
import Foundation
import HTTPAuth
import PushProtocol

/// The pushkey of a Matrix client's pusher: `<app>.<user>.<signature>`, with the user and the signature in base64url.
///
/// Homeservers do not authenticate to a push gateway, so the pushkey itself must permit pushes to its user. The app's
/// backend signs it after the user's sign-in: HMAC-SHA256 of the part before the last dot.
struct MatrixPushkey: Hashable, Sendable {
    /// The specification's maximum, in bytes.
    static let maximumLength = 512

    let app: AppID
    let user: UserID

    /// - Returns: nil for a text that none of the keys has signed.
    init?(_ text: String, keys: [SymmetricKey]) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.maximumLength, parts.count == 3, let signature = [UInt8](base64URL: parts[2])
        else { return nil }
        let signed = Data("\(parts[0]).\(parts[1])".utf8)
        let isSigned = keys.contains {
            HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: signed, using: $0)
        }
        guard isSigned, let app = AppID(rawValue: String(parts[0])),
            let name = [UInt8](base64URL: parts[1]).flatMap({ String(validating: $0, as: UTF8.self) }),
            let user = UserID(rawValue: name)
        else { return nil }
        self.app = app
        self.user = user
    }

    /// Reads the keys of the setting: one, or during a change several, separated by white space.
    static func keys(_ setting: String) -> [SymmetricKey] {
        setting.split(whereSeparator: \.isWhitespace).map { SymmetricKey(data: Data($0.utf8)) }
    }
}
