import Foundation
import HTTPSFetch
import HTTPTypes
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import Console

@Suite(.timeLimit(.minutes(1))) struct SignInTests {
    @Test func `a development login needs this console's own form`() async throws {
        try await ConsoleHTTP.with { console in
            let fields = ["name": "Kim", "role": "support", "target": "/person?x=1"]
            let answer = try await console.post("/sign-in", fields)
            #expect(answer.status == 303 && answer.headers[.location] == "/person?x=1")
            #expect(answer.headers[values: .setCookie].first?.contains("HttpOnly; SameSite=Lax") == true)
            #expect(try await console.post("/sign-in", fields, origin: "https://evil.example").status == 403)
            #expect(try await console.post("/sign-in", fields, origin: nil).status == 403)
            #expect(try await console.post("/sign-in", ["name": "", "role": "support"]).status == 400)
            #expect(try await console.post("/sign-in", ["name": "Kim", "role": "root"]).status == 400)
            #expect(try await console.entries.map(\.action) == [.signedIn])
        }
    }

    @Test func `a sign-out ends the cookie`() async throws {
        try await ConsoleHTTP.with { console in
            let answer = try await console.post("/sign-out", [:], as: console.session(.look))
            #expect(answer.headers[values: .setCookie].first?.contains("Max-Age=0") == true)
        }
    }

    /// An issuer of OpenID Connect on loopback.
    private final class TestIssuer: Sendable {
        private final class State: Sendable {
            let url = Mutex("")
            let claims = Mutex<JSONValue>(.null)
        }

        let server: ScriptedServer
        private let state = State()

        init() async throws {
            let keys = try await TestSupport.Issuer.ecdsa("k1")
            server = try ScriptedServer { [state] request in
                let document = Self.document(
                    of: request.split(separator: " ")[1], url: state.url.withLock { $0 },
                    token: (try? keys.token(state.claims.withLock { $0 })) ?? "", key: keys.jwk)
                let text = (try? WireCoding.text(document)) ?? ""
                return .text("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
            }
            state.url.withLock { $0 = "http://127.0.0.1:\(server.port)" }
        }

        private static func document(of path: Substring, url: String, token: String, key: JSONValue) -> JSONValue {
            switch path {
            case "/.well-known/openid-configuration":
                [
                    "issuer": .string(url), "authorization_endpoint": .string("\(url)/authorize"),
                    "token_endpoint": .string("\(url)/token"), "jwks_uri": .string("\(url)/keys"),
                ]
            case "/keys": ["keys": .array([key])]
            default: ["id_token": .string(token)]
            }
        }

        var url: String { state.url.withLock { $0 } }

        /// The claims of the next ID token.
        func issue(_ claims: JSONValue) { state.claims.withLock { $0 = claims } }

        func provider() -> OpenIDProvider {
            OpenIDProvider(
                issuer: url, clientID: "console", clientSecret: "s3cret", roleClaim: "groups",
                callback: "http://localhost/sign-in/callback", fetch: HTTPSFetch(), logger: .silent)
        }
    }

    private static func claims(_ issuer: TestIssuer, _ signIn: SignIn, _ changes: [String: JSONValue] = [:])
        -> JSONValue
    {
        let now = Int64(Date().timeIntervalSince1970)
        let good: [String: JSONValue] = [
            "iss": .string(issuer.url), "aud": "console", "sub": "u1", "email": "kim@example.com", "iat": .int(now),
            "exp": .int(now + 300), "nonce": .string(signIn.nonce), "groups": ["heliograph-support", "staff"],
        ]
        return .object(good.merging(changes) { $1 })
    }

    @Test func `a person signs in at the issuer with name and role`() async throws {
        let issuer = try await TestIssuer()
        defer { issuer.server.stop() }
        let signIn = SignIn(target: "/person")
        issuer.issue(Self.claims(issuer, signIn))
        let page = try await issuer.provider().page(for: signIn)
        #expect(
            page.hasPrefix("\(issuer.url)/authorize?response_type=code&client_id=console&redirect_uri=http%3A%2F%2F"))
        #expect(page.contains("code_challenge=\(signIn.challenge)&code_challenge_method=S256"))
        let session = try await issuer.provider().session(code: "c1", of: signIn)
        #expect(session.name == "kim@example.com" && session.role == .support)
        let request = try #require(issuer.server.requests.first { $0.hasPrefix("POST /token") })
        #expect(request.contains("code=c1&") && request.contains("code_verifier=\(signIn.verifier)"))
    }

    @Test(
        arguments: [
            (["nonce": "other"], "another sign-in"), (["aud": "other"], "another client"),
            (["iss": "https://evil.example"], "issuer is another"), (["exp": 1], "expired"),
            (["iat": 99_999_999_999], "from the future"), (["aud": ["console", "other"]], "several clients"),
            (["groups": ["staff"]], "no role here"), (["groups": .null], "no role here"),
        ] as [([String: JSONValue], String)])
    func `an ID token that does not fit is refused`(changes: [String: JSONValue], message: String) async throws {
        let issuer = try await TestIssuer()
        defer { issuer.server.stop() }
        let signIn = SignIn(target: "/")
        issuer.issue(Self.claims(issuer, signIn, changes))
        do {
            _ = try await issuer.provider().session(code: "c1", of: signIn)
            Issue.record("the sign-in succeeded")
        } catch {
            #expect(error.message.contains(message), "\(error.message)")
        }
    }

    @Test func `a callback without its sign-in is refused`() async throws {
        let issuer = try await TestIssuer()
        defer { issuer.server.stop() }
        try await ConsoleHTTP.with(signIn: .provider(issuer.provider())) { console in
            #expect(try await console.get("/sign-in/callback?code=c&state=s").status == 400)
            let begun = try await console.get("/sign-in/start?target=/rules")
            #expect(begun.status == 303 && begun.headers[.location]?.hasPrefix("\(issuer.url)/authorize?") == true)
            #expect(begun.headers[values: .setCookie].first?.hasPrefix("heliograph-sign-in=") == true)
            #expect(try await console.post("/sign-in", ["name": "Kim", "role": "operate"]).status == 404)
        }
    }
}
