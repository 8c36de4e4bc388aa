package import PushProtocol
import Crypto
import FoundationEssentials

/// A signed token for one push service: the header `authorization` of its requests (RFC 8292 §3).
package struct VAPIDToken: Hashable, Sendable {
    /// Half of the allowed 24 hours, so that a clock that is up to 12 hours off does no harm (RFC 8292 §2).
    package static let lifetime = Duration.seconds(12 * 3600)

    /// `vapid t=<token>, k=<public key>`. Never log it.
    package let authorization: String
    package let issuedAt: Timestamp

    package var expiresAt: Timestamp { issuedAt + Self.lifetime }

    /// Signs a token.
    ///
    /// - Parameter audience: the push service's origin, ``WebPushEndpoint/origin``.
    package static func sign(
        for audience: String, key: VAPIDKey, contact: VAPIDContact, at now: Timestamp
    ) throws -> VAPIDToken {
        let claims: JSONValue = [
            "aud": .string(audience), "exp": .int((now + lifetime).seconds), "sub": .string(contact.uri),
        ]
        let signed = "\(header).\(Base64URL.text(of: JSONText.bytes(of: claims)))"
        let signature = try key.signing.signature(for: Array(signed.utf8)).rawRepresentation
        return VAPIDToken(
            authorization: "vapid t=\(signed).\(Base64URL.text(of: signature)), k=\(key.publicKey)", issuedAt: now)
    }

    private static let header = Base64URL.text(of: JSONText.bytes(of: ["alg": "ES256", "typ": "JWT"]))
}

extension VAPIDToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "‹redacted›" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The tokens of one key by push service. Pure: the caller has the clock.
package struct VAPIDTokenCache: Sendable {
    /// The age at which a token is replaced: half of its life.
    package static let maximumAge = Duration.seconds(6 * 3600)
    /// A token from a later time than this was signed before the clock was corrected.
    private static let maximumClockStep = Duration.seconds(60)

    private struct Entry: Sendable {
        var token: VAPIDToken
        /// The number of the last use.
        var lastUse: UInt64
    }

    /// The maximum number of tokens. Clients choose the origins, so there is no other bound.
    package let capacity: Int
    private var entries: [String: Entry] = [:]
    private var uses: UInt64 = 0

    package init(capacity: Int = 256) {
        precondition(capacity > 0)
        self.capacity = capacity
    }

    package var count: Int { entries.count }

    /// The token for `origin`: the stored one while it is young enough, else a new one from `sign`. The least recently
    /// used token makes room.
    package mutating func token(
        for origin: String, at now: Timestamp, sign: (String) throws -> VAPIDToken
    ) rethrows -> VAPIDToken {
        uses += 1
        if let token = entries[origin]?.token, isCurrent(token, at: now) {
            entries[origin]?.lastUse = uses
            return token
        }
        let token = try sign(origin)
        if entries[origin] == nil, entries.count >= capacity,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key
        {
            entries[oldest] = nil
        }
        entries[origin] = Entry(token: token, lastUse: uses)
        return token
    }

    /// Drops the token that the push service refused. Keeps a token that replaced it meanwhile.
    package mutating func remove(_ refused: VAPIDToken, for origin: String) {
        if entries[origin]?.token == refused { entries[origin] = nil }
    }

    private func isCurrent(_ token: VAPIDToken, at now: Timestamp) -> Bool {
        let age = now - token.issuedAt
        return age < Self.maximumAge && age >= .zero - Self.maximumClockStep
    }
}
