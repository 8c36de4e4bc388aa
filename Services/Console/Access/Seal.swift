import Crypto
import FoundationEssentials
import HTTPAuth
import PushProtocol

/// Signs values that browsers keep: `base64url(JSON).base64url(HMAC-SHA256)`. The value can be read, but not changed.
///
/// Each purpose has a key of its own, so that a support link is no session.
struct Seal: Sendable {
    enum Purpose: String, Sendable { case session, signIn = "sign-in", supportLink = "support-link", form }

    private let key: SymmetricKey

    /// - Parameter secret: `CONSOLE_SESSION_KEY`.
    init(secret: String, purpose: Purpose) {
        key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: Array(secret.utf8)), info: Array(purpose.rawValue.utf8),
            outputByteCount: 32)
    }

    /// - Parameter until: the value is refused from this time on.
    func text(of value: [String: JSONValue], until: Date) -> String {
        let members = JSONValue.object(value.merging(["until": .int(Int64(until.timeIntervalSince1970))]) { $1 })
        // Texts and whole numbers always encode.
        let payload = Data((try? WireCoding.encode(members)) ?? []).base64URL
        return "\(payload).\(Data(HMAC<SHA256>.authenticationCode(for: Array(payload.utf8), using: key)).base64URL)"
    }

    /// Returns the value, or `nil` if the text was changed, has another purpose or is too old.
    func value(of text: String, now: Date) -> JSONValue? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let code = [UInt8](base64URL: parts[1]), let payload = [UInt8](base64URL: parts[0]),
            HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: Array(parts[0].utf8), using: key),
            let value = try? WireCoding.decode(JSONValue.self, from: payload),
            let until = value["until"]?.int, Double(until) > now.timeIntervalSince1970
        else { return nil }
        return value
    }

    /// A code that only this console can make for a text.
    func code(of text: String) -> String {
        Data(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key)).base64URL
    }

    /// Whether the code is that of the text. Constant time.
    func isCode(_ code: String, of text: String) -> Bool {
        guard let bytes = [UInt8](base64URL: code) else { return false }
        return HMAC<SHA256>.isValidAuthenticationCode(bytes, authenticating: Array(text.utf8), using: key)
    }
}

extension Data {
    /// Base64url without padding (RFC 7515 §2).
    var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
