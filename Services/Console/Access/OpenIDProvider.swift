import FoundationEssentials
import HTTPAuth
import HTTPSFetch
import Logging
import PushProtocol

/// Signs people in at an issuer of OpenID Connect, with the authorization code flow and PKCE (Core 1.0 §3.1, RFC 7636).
struct OpenIDProvider: Sendable {
    /// The reason for which a person was not signed in, for the page.
    struct SignInError: Error, Equatable {
        let message: String
    }

    let issuer: String
    let clientID: String
    let clientSecret: String
    let roleClaim: String
    let callback: String
    let fetch: HTTPSFetch
    let logger: Logger
    var now: @Sendable () -> Date = { Date() }

    /// The addresses of the issuer's discovery document (Discovery 1.0 §4).
    private struct Endpoints {
        let authorization: String
        let token: String
        let keys: String
    }

    private func endpoints() async throws(SignInError) -> Endpoints {
        let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
        let document = try await json(
            FetchRequest(url: "\(base)/.well-known/openid-configuration"), "the issuer's document")
        guard document["issuer"]?.string == issuer else {
            throw SignInError(
                message: "The discovery document of \(base) names another issuer. Set CONSOLE_OIDC_ISSUER to it.")
        }
        guard let authorization = document["authorization_endpoint"]?.string,
            let token = document["token_endpoint"]?.string, let keys = document["jwks_uri"]?.string
        else { throw SignInError(message: "The issuer's discovery document lacks an endpoint.") }
        return Endpoints(authorization: authorization, token: token, keys: keys)
    }

    /// The issuer's page, to which the browser goes.
    func page(for signIn: SignIn) async throws(SignInError) -> String {
        let address = try await endpoints().authorization
        let query = FormCoding.text([
            ("response_type", "code"), ("client_id", clientID), ("redirect_uri", callback),
            ("scope", "openid profile email \(roleClaim == "groups" ? "groups" : "")".trimmingSuffix),
            ("state", signIn.state), ("nonce", signIn.nonce), ("code_challenge", signIn.challenge),
            ("code_challenge_method", "S256"),
        ])
        return address + (address.contains("?") ? "&" : "?") + query
    }

    /// Exchanges the code, verifies the ID token and returns the person with their role.
    func session(code: String, of signIn: SignIn) async throws(SignInError) -> Session {
        let endpoints = try await endpoints()
        let body = FormCoding.text([
            ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", callback),
            ("client_id", clientID), ("client_secret", clientSecret), ("code_verifier", signIn.verifier),
        ])
        let answer = try await json(
            FetchRequest(
                method: "POST", url: endpoints.token,
                headers: [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")],
                body: Array(body.utf8)),
            "the token endpoint")
        guard let token = answer["id_token"]?.string else {
            throw SignInError(message: "The issuer returned no ID token.")
        }
        let claims: JSONValue
        do {
            claims = try await IDTokenVerifier(
                issuer: issuer, audience: clientID, keys: endpoints.keys, fetch: fetch, logger: logger
            ).claims(of: token, nonce: signIn.nonce, now: now())
        } catch {
            throw SignInError(message: "The ID token is refused: \(error).")
        }
        return try person(claims)
    }

    private func person(_ claims: JSONValue) throws(SignInError) -> Session {
        let names = claims[roleClaim]?.array?.compactMap(\.string) ?? claims[roleClaim]?.string.map { [$0] } ?? []
        guard let name = ["email", "preferred_username", "sub"].lazy.compactMap({ claims[$0]?.string }).first else {
            throw SignInError(message: "The ID token names no person.")
        }
        guard let role = Role.highest(in: names) else {
            throw SignInError(
                message: "\(name) has no role here. Add the person to heliograph-look, heliograph-support or "
                    + "heliograph-operate in the claim “\(roleClaim)”.")
        }
        return Session(name: name, role: role)
    }

    private func json(_ request: FetchRequest, _ source: String) async throws(SignInError) -> JSONValue {
        let answer: FetchResponse
        do {
            answer = try await fetch.send(request)
        } catch {
            throw SignInError(message: "The issuer does not answer: \(error).")
        }
        guard answer.status == 200, let document = try? WireCoding.decode(JSONValue.self, from: answer.body) else {
            throw SignInError(message: "A request to \(source) failed with status \(answer.status).")
        }
        return document
    }
}

extension String {
    fileprivate var trimmingSuffix: String { hasSuffix(" ") ? String(dropLast()) : self }
}
