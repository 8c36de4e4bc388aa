import Crypto
import FoundationEssentials
import PushProtocol

/// A sign-in in progress at the issuer: its secrets and the page to return to (OpenID Connect Core 1.0 §3.1, RFC 7636).
struct SignIn: Hashable, Sendable {
    /// Binds the response to this browser.
    let state: String
    /// Binds the ID token to this sign-in.
    let nonce: String
    /// Proves to the issuer that the code belongs to this sign-in.
    let verifier: String
    /// A path of the console.
    let target: String

    init(target: String) {
        state = Self.random()
        nonce = Self.random()
        verifier = Self.random()
        self.target = Self.path(target)
    }

    init?(_ value: JSONValue) {
        guard let state = value["state"]?.string, let nonce = value["nonce"]?.string,
            let verifier = value["verifier"]?.string, let target = value["target"]?.string
        else { return nil }
        (self.state, self.nonce, self.verifier, self.target) = (state, nonce, verifier, Self.path(target))
    }

    var value: [String: JSONValue] {
        ["state": .string(state), "nonce": .string(nonce), "verifier": .string(verifier), "target": .string(target)]
    }

    /// `code_challenge` for the method S256.
    var challenge: String { Data(SHA256.hash(data: Array(verifier.utf8))).base64URL }

    /// Returns the path of this console, or `/`: another site's address would make the console a redirector.
    static func path(_ text: String) -> String {
        text.hasPrefix("/") && !text.hasPrefix("//") && !text.contains("\\")
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            ? text : "/"
    }

    private static func random() -> String {
        SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) }.base64URL
    }
}
