package import FoundationEssentials
package import HTTPSFetch
package import Logging
package import PushProtocol
import ServiceKit

/// Verifies ID tokens of one issuer and one client (OpenID Connect Core 1.0 §3.1.3.7), signed with RS256 or ES256.
package struct IDTokenVerifier: Sendable {
    /// The reason for which a token is refused. Contains nothing of the token.
    package struct Refusal: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// The tolerated difference of the clocks.
    static let leeway = 60.0

    private let issuer: String
    private let audience: String
    private let keys: String
    private let fetch: HTTPSFetch
    private let logger: Logger

    /// - Parameters:
    ///   - audience: the client's id.
    ///   - keys: the URL of the issuer's JWK set.
    package init(issuer: String, audience: String, keys: String, fetch: HTTPSFetch, logger: Logger) {
        self.issuer = issuer
        self.audience = audience
        self.keys = keys
        self.fetch = fetch
        self.logger = logger
    }

    /// Returns the claims of a valid token.
    ///
    /// - Parameter nonce: the value that the sign-in began with.
    package func claims(of text: String, nonce: String, now: Date) async throws(Refusal) -> JSONValue {
        let token: SignedToken
        let claims: JSONValue
        do throws(BearerTokenError) {
            token = try SignedToken(text)
            claims = try token.claims()
        } catch { throw Refusal(description: "it is malformed") }
        guard
            let algorithm = [BearerVerification.Algorithm.rs256, .es256].first(where: { $0.rawValue == token.algorithm }
            )
        else { throw Refusal(description: "it is signed with neither RS256 nor ES256") }
        let cache = KeyCache(algorithm, from: .url(keys), fetch: fetch, uptime: { .now }, logger: logger)
        await cache.refresh()
        guard await cache.lastError == nil else { throw Refusal(description: "the issuer's keys cannot be read") }
        guard await cache.keys.haveSigned(token) else { throw Refusal(description: "no key of the issuer signed it") }
        try check(claims, nonce: nonce, now: now.timeIntervalSince1970)
        return claims
    }

    private func check(_ claims: JSONValue, nonce: String, now: Double) throws(Refusal) {
        guard claims["iss"]?.string == issuer else { throw Refusal(description: "its issuer is another one") }
        let audiences = claims["aud"]?.array?.compactMap(\.string) ?? claims["aud"]?.string.map { [$0] } ?? []
        guard audiences.contains(audience) else { throw Refusal(description: "it is for another client") }
        // Of several audiences, `azp` names the client (§2).
        guard audiences.count == 1 || claims["azp"]?.string == audience else {
            throw Refusal(description: "it is for several clients")
        }
        guard let expiry = claims["exp"]?.number, expiry + Self.leeway > now else {
            throw Refusal(description: "it has expired")
        }
        guard let issued = claims["iat"]?.number, issued - Self.leeway < now else {
            throw Refusal(description: "it is from the future; compare the clocks")
        }
        guard claims["nonce"]?.string == nonce else { throw Refusal(description: "it belongs to another sign-in") }
    }
}
