import PushProtocol
import Crypto

/// The key pair that identifies an app to push services (RFC 8292): P-256, for signatures with ES256.
///
/// Browsers bind a subscription to the public key for its whole life, so a new key needs new subscriptions.
package struct VAPIDKey: Sendable {
    /// Why a text is no key. Never quotes it.
    package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    let signing: P256.Signing.PrivateKey

    /// Generates a key pair.
    package init() { signing = P256.Signing.PrivateKey() }

    /// Reads a private key: 32 bytes in base64url without padding, the form of most Web Push libraries.
    package init(privateKey text: String) throws(Problem) {
        guard let bytes = Base64URL.bytes(of: text) else {
            throw Problem("the VAPID private key is not base64url without padding")
        }
        guard bytes.count == 32 else {
            throw Problem("the VAPID private key has \(bytes.count) bytes instead of 32; is it the public key?")
        }
        guard let key = try? P256.Signing.PrivateKey(rawRepresentation: bytes) else {
            throw Problem("the VAPID private key is not a key of the curve P-256")
        }
        signing = key
    }

    /// Reads a file with the private key as its only line.
    package init(file contents: some Sequence<UInt8>) throws(Problem) {
        let text = String(decoding: Array(contents), as: UTF8.self)
        try self.init(privateKey: String(text.trimmingPrefix { $0.isWhitespace }.prefix { !$0.isWhitespace }))
    }

    /// The private key in base64url. Never log it.
    package var privateKey: String { Base64URL.text(of: signing.rawRepresentation) }

    /// The `applicationServerKey` of the browser's `subscribe()`, and the parameter `k` of a request: the
    /// uncompressed point in base64url.
    package var publicKey: String { Base64URL.text(of: signing.publicKey.x963Representation) }
}

extension VAPIDKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "VAPID key \(publicKey)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// How a push service reaches the sender: the claim `sub`, a `mailto:` or `https:` URI (RFC 8292 §2.1).
///
/// Apple refuses other values, white space and names that are not of the internet (ProviderFacts.md §F.4).
package struct VAPIDContact: Hashable, Sendable {
    package let uri: String

    package init(_ uri: String) throws(VAPIDKey.Problem) {
        guard uri.isVisibleASCII, uri.utf8.count <= 256 else {
            throw VAPIDKey.Problem("the VAPID contact is not up to 256 visible ASCII characters")
        }
        let host: Substring
        if uri.hasPrefix("mailto:") {
            let parts = uri.dropFirst("mailto:".count).split(separator: "@", omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty, !uri.contains("<") else {
                throw VAPIDKey.Problem("the VAPID contact has no e-mail address; write mailto:name@example.com")
            }
            host = parts[1]
        } else if uri.hasPrefix("https://") {
            host = uri.dropFirst("https://".count).prefix { !"/?#".contains($0) }
        } else {
            throw VAPIDKey.Problem("the VAPID contact does not begin with mailto: or https://")
        }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count >= 2, !labels.contains(""), !Self.privateNames.contains(String(labels[labels.count - 1]))
        else { throw VAPIDKey.Problem("the VAPID contact \(host) is not a name of the internet") }
        self.uri = uri
    }

    private static let privateNames: Set<String> = ["local", "localhost", "internal", "invalid"]
}
