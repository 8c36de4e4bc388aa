package import PushProtocol
import Crypto

/// A browser's push subscription: where to send, and the keys to encrypt with (W3C Push API, `PushSubscription`).
///
/// Prints without its secrets. ``text`` is the form in which a push has it as its token.
package struct WebPushSubscription: Hashable, Sendable {
    /// Why a text is no subscription: the member, the fault and the next step. Quotes the endpoint's host at most.
    package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }

        static let advice = "send the result of PushSubscription.toJSON() unchanged"
    }

    package let endpoint: WebPushEndpoint
    /// The browser's public key: an uncompressed P-256 point of 65 bytes (RFC 8291 §3.1).
    package let publicKey: [UInt8]
    /// The authentication secret: 16 bytes (RFC 8291 §3.2).
    package let authSecret: [UInt8]
    /// When the browser lets the subscription expire; most have no such time.
    package let expiresAt: Timestamp?

    /// Reads the JSON of `PushSubscription.toJSON()`:
    ///
    ///     {"endpoint": "https://…", "expirationTime": null, "keys": {"p256dh": "B…", "auth": "…"}}
    ///
    /// `expirationTime` is in milliseconds since 1970. Other members are ignored, because browsers may add some.
    package init(_ json: JSONValue, policy: WebPushEndpoint.Policy = .publicInternet) throws(Problem) {
        guard json.object != nil else { throw Problem("the subscription is not an object; \(Problem.advice)") }
        guard let endpoint = json["endpoint"]?.string else {
            throw Problem("endpoint: it is missing or not a string; \(Problem.advice)")
        }
        self.endpoint = try WebPushEndpoint(endpoint, policy: policy)
        publicKey = try Self.key("p256dh", bytes: 65, in: json)
        guard (try? P256.KeyAgreement.PublicKey(x963Representation: publicKey)) != nil else {
            throw Problem("keys.p256dh: it is not a point of the curve P-256; \(Problem.advice)")
        }
        authSecret = try Self.key("auth", bytes: 16, in: json)
        expiresAt = try Self.expiration(json["expirationTime"])
        guard text.utf8.count <= DeviceToken.maximumLength else {
            throw Problem("the subscription is longer than \(DeviceToken.maximumLength) bytes; \(Problem.advice)")
        }
    }

    /// Reads ``text``.
    package init(text: String, policy: WebPushEndpoint.Policy = .publicInternet) throws(Problem) {
        guard let json = try? WireCoding.decode(JSONValue.self, from: Array(text.utf8)) else {
            throw Problem("the subscription is not JSON; \(Problem.advice)")
        }
        try self.init(json, policy: policy)
    }

    /// The subscription in the browser's JSON, compact with sorted members, so that equal subscriptions have equal
    /// texts. Never log it.
    package var text: String { text(expiring: expiresAt) }

    /// The token of a registration: ``text`` without the expiry. A browser may extend a subscription, which stays the same
    /// registration.
    package var token: DeviceToken { DeviceToken(secret: text(expiring: nil)) }

    private func text(expiring expiresAt: Timestamp?) -> String {
        var members: [String: JSONValue] = [
            "endpoint": .string(endpoint.secret),
            "keys": [
                "auth": .string(Base64URL.text(of: authSecret)), "p256dh": .string(Base64URL.text(of: publicKey)),
            ],
        ]
        members["expirationTime"] = expiresAt.map { .int($0.milliseconds) }
        return String(decoding: JSONText.bytes(of: .object(members)), as: UTF8.self)
    }

    private static func key(_ name: String, bytes count: Int, in json: JSONValue) throws(Problem) -> [UInt8] {
        guard let text = json["keys"]?[name]?.string else {
            throw Problem("keys.\(name): it is missing or not a string; \(Problem.advice)")
        }
        guard let bytes = Base64URL.bytes(of: text) else {
            throw Problem("keys.\(name): it is not base64url without padding; \(Problem.advice)")
        }
        guard bytes.count == count else {
            throw Problem("keys.\(name): it has \(bytes.count) bytes instead of \(count); \(Problem.advice)")
        }
        return bytes
    }

    private static func expiration(_ value: JSONValue?) throws(Problem) -> Timestamp? {
        guard let value, value != .null else { return nil }
        // A `DOMHighResTimeStamp` may have a fraction.
        guard let milliseconds = value.number, milliseconds.isFinite, abs(milliseconds) < 1e15 else {
            throw Problem(
                "expirationTime: it is neither null nor milliseconds since 1970; \(Problem.advice)")
        }
        return Timestamp(milliseconds: Int64(milliseconds))
    }
}

extension WebPushSubscription: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(endpoint)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
