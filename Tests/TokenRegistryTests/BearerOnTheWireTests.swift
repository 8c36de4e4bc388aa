import CryptoExtras
import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import JWTKit
import Logging
import NIOCore
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Valid and invalid bearer tokens over HTTP on a socket, for each algorithm and each source of keys.
@Suite(.timeLimit(.minutes(2))) struct BearerOnTheWireTests {
    static let now = Int64(Date().timeIntervalSince1970)

    /// One app for each algorithm: a PEM file for ES256, a JWK set at a URL for RS256, a secret for HS256.
    struct Apps {
        let folder: TemporaryFolder
        let site: JWKSServer
        let issuers: [String: Issuer]
        let catalog: AppCatalog

        init() async throws {
            folder = try TemporaryFolder()
            let issuers = [
                "ec": try await Issuer.ecdsa(), "rsa": try await Issuer.rsa("r1"),
                "mac": try await Issuer.hmac(BearerKeys.secret),
            ]
            self.issuers = issuers
            site = try JWKSServer(try Issuer.set(issuers["rsa"]!))
            let keys: [(String, BearerVerification.Algorithm, BearerVerification.KeySource)] = [
                ("ec", .es256, .file(try folder.write("key.pem", issuers["ec"]!.material))),
                ("rsa", .rs256, .url(site.url)),
                ("mac", .hs256, .file(try folder.write("secret", issuers["mac"]!.material))),
            ]
            catalog = AppCatalog(
                keys.map { name, algorithm, keys in
                    let bearer = BearerVerification(
                        algorithm: algorithm, keys: keys, issuer: "https://id.example", audience: "push",
                        userClaim: "uid", appClaim: .init("azp", is: "client-of-\(name)"))
                    return AppConfiguration(id: AppID(rawValue: name)!, bearer: [bearer])
                })
        }

        static func claims(_ app: String, _ changes: JSONValue = [:]) -> JSONValue {
            let good: JSONValue = [
                "iss": "https://id.example", "aud": "push", "uid": "456", "azp": .string("client-of-\(app)"),
                "exp": .int(now + 600),
            ]
            // A null removes the claim.
            return .object(good.merging(changes).object!.filter { $0.value != .null })
        }
    }

    /// Serves the registration routes on a socket.
    static func withSocket(
        _ body:
            @escaping @Sendable (
                Apps, CapturingLogger, @escaping @Sendable (String) async throws -> TestResponse, RegistrationStore
            ) async throws -> Void
    ) async throws {
        let apps = try await Apps()
        defer { apps.site.stop() }
        let log = CapturingLogger()
        let uptime = ManualClock()
        let gate = BearerAuthenticator(
            try await BearerVerifier(apps.catalog, logger: log.logger), uptime: { uptime.now }, logger: log.logger)
        try await StoreFixture.withStore { store, _ in
            let router = Router(context: BasicRequestContext.self)
            RegistrationRoutes(
                devices: DeviceRegistrar(store: store), gate: gate, changes: RateLimiter("changes", perMinute: 0)
            ).add(to: router)
            let application = Application(
                router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)))
            try await application.test(.live) { client in
                let register: @Sendable (String) async throws -> TestResponse = { token in
                    uptime.advance(by: BearerAuthenticator.quiet)
                    return try await client.execute(
                        uri: "\(RoutesTests.path)/register", method: .post, headers: RoutesTests.headers(token),
                        body: RoutesTests.body)
                }
                try await body(apps, log, register, store)
            }
        }
    }

    /// Expects `status` and `challenge` for each token, `reason` in the log, and nothing stored.
    static func expectRefused(
        _ status: HTTPResponse.Status, _ challenge: String,
        _ tokens: @escaping @Sendable (String, Apps) async throws -> [(String, BearerTokenError.Reason)]
    ) async throws {
        try await withSocket { apps, log, register, store in
            for app in apps.issuers.keys.sorted() {
                for (index, (token, reason)) in try await tokens(app, apps).enumerated() {
                    let before = log.lines.count
                    let response = try await register(token)
                    let answer = try RoutesTests.json(response)
                    #expect(response.status == status, "\(app) \(index) \(reason)")
                    #expect(response.headers[.wwwAuthenticate] == challenge, "\(app) \(index) \(reason)")
                    #expect(answer["success"] == false && answer["error"]?.string?.isEmpty == false)
                    let reasons = log.lines.dropFirst(before).map { $0.metadata["reason"] }
                    #expect(reasons == ["\(reason.rawValue)"], "\(app) \(index)")
                    for part in token.split(separator: ".") where part.count > 8 {
                        #expect(!"\(log.lines)".contains(part) && !"\(answer)".contains(part))
                    }
                }
                #expect(try await store.tokens(of: "456", app: AppID(rawValue: app)!).isEmpty)
            }
        }
    }

    static let invalid = #"Bearer error="invalid_token""#

    @Test func `a valid token of each algorithm registers for its app and user`() async throws {
        try await Self.withSocket { apps, _, register, store in
            for (app, issuer) in apps.issuers {
                let response = try await register(try issuer.token(Apps.claims(app)))
                #expect(response.status == .ok, "\(app)")
                #expect(try await store.tokens(of: "456", app: AppID(rawValue: app)!) == ["abcd"])
            }
        }
    }

    @Test func `a token that is expired, not yet valid, or of another issuer or audience gets 401`()
        async throws
    {
        try await Self.expectRefused(.unauthorized, Self.invalid) { app, apps in
            let cases: [(JSONValue, BearerTokenError.Reason)] = [
                (["exp": .int(Self.now - 60)], .expired), (["exp": nil], .expired), (["exp": "9999999999"], .expired),
                (["nbf": .int(Self.now + 300)], .notYetValid), (["iss": "https://id.example/"], .wrongIssuer),
                (["aud": "pus"], .wrongAudience), (["aud": ["web"]], .wrongAudience), (["aud": nil], .wrongAudience),
            ]
            return try cases.map { (try apps.issuers[app]!.token(Apps.claims(app, $0)), $1) }
        }
    }

    @Test func `a token signed with a wrong key gets 401, also with the key in its header`() async throws {
        try await Self.expectRefused(.unauthorized, Self.invalid) { app, apps in
            let strangers = [
                try await Issuer.ecdsa(), try await Issuer.rsa("r1"), try await Issuer.rsa("r2"),
                try await Issuer.hmac(String(repeating: "x", count: 40)),
            ]
            let claims = Apps.claims(app)
            return try strangers.flatMap { stranger in
                [
                    (try stranger.token(claims), .untrusted),
                    (try stranger.token(claims, header: ["jwk": stranger.jwk]), .untrusted),
                    (try stranger.token(claims, header: ["jku": "http://127.0.0.1:1/", "kid": "../r1"]), .untrusted),
                ]
            }
        }
    }

    @Test func `alg none in any spelling gets 401`() async throws {
        try await Self.expectRefused(.unauthorized, Self.invalid) { app, apps in
            let good = try apps.issuers[app]!.token(Apps.claims(app)).split(separator: ".")
            return try ["none", "None", "NONE", "nOnE", ""].flatMap {
                (name: String) -> [(String, BearerTokenError.Reason)] in
                let header = try Issuer.part(["alg": .string(name), "typ": "JWT"])
                return [("\(header).\(good[1]).", .untrusted), ("\(header).\(good[1]).\(good[2])", .untrusted)]
            }
        }
    }

    @Test func `a public key used as shared secret, and any other algorithm name, get 401`() async throws {
        try await Self.expectRefused(.unauthorized, Self.invalid) { app, apps in
            var tokens: [(String, BearerTokenError.Reason)] = []
            for other in ["ec", "rsa"] {
                let pem = apps.issuers[other]!.material
                let secrets: [String] = [pem, pem + "\n", String(pem.split(separator: "\n").joined())]
                for secret in secrets {
                    let forger = try await Issuer.hmac(secret)
                    tokens.append((try forger.token(Apps.claims(app)), .untrusted))
                    tokens.append((try forger.token(Apps.claims(app), header: ["kid": "r1"]), .untrusted))
                    tokens.append((try forger.token(Apps.claims(app), header: ["alg": "RS256"]), .untrusted))
                }
            }
            let issuer = apps.issuers[app]!
            for name in ["HS256", "RS256", "ES256", "HS384", "PS256", "RS512"] where name != issuer.algorithm.name {
                tokens.append((try issuer.token(Apps.claims(app), header: ["alg": .string(name)]), .untrusted))
            }
            return tokens
        }
    }

    @Test func `a tampered token gets 401`() async throws {
        try await Self.expectRefused(.unauthorized, Self.invalid) { app, apps in
            let issuer = apps.issuers[app]!
            let parts = try issuer.token(Apps.claims(app)).split(separator: ".").map(String.init)
            let elevated = try Issuer.part(Apps.claims(app, ["uid": "1"]))
            let renamed = try Issuer.part(["alg": .string(issuer.algorithm.name), "typ": "at+jwt"])
            let flipped = String(parts[2].first == "A" ? "B" : "A") + String(parts[2].dropFirst())
            return [
                ("\(parts[0]).\(elevated).\(parts[2])", .untrusted), ("\(renamed).\(parts[1]).\(parts[2])", .untrusted),
                ("\(parts[0]).\(parts[1]).\(flipped)", .untrusted), ("\(parts[0]).\(parts[1]).", .untrusted),
                ("\(parts[0]).\(parts[1])", .malformed), ("\(parts[0]).\(parts[1]).\(parts[2]).", .malformed),
                ("\(parts[0]).\(parts[1]).\(parts[2])==", .malformed),
                (try issuer.token(Apps.claims(app), header: ["crit": ["b64"], "b64": false]), .unknownExtension),
                (try issuer.token("claims"), .malformed),
                (
                    try issuer.token(Apps.claims(app, ["pad": .string(String(repeating: "p", count: 16_000))])),
                    .malformed
                ),
            ]
        }
    }

    @Test func `many rejected tokens give one log line a minute for each reason`() async throws {
        let (log, uptime) = (CapturingLogger(), ManualClock())
        let verifier = try await BearerVerifier(AppCatalog([]), logger: log.logger)
        let gate = BearerAuthenticator(verifier, uptime: { uptime.now }, logger: log.logger)
        for minute in 1...2 {
            for token in [nil, "x", "y"] {
                await #expect(throws: APIError.self) { try await gate.authenticate(token) }
            }
            #expect(log.lines.count == 2 * minute)
            uptime.advance(by: BearerAuthenticator.quiet)
        }
    }

    @Test func `a genuine token without a user of an app here gets 403`() async throws {
        try await Self.expectRefused(.forbidden, #"Bearer error="insufficient_scope""#) { app, apps in
            let cases: [(JSONValue, BearerTokenError.Reason)] = [
                (["azp": "client-of-another"], .wrongApp), (["azp": nil], .wrongApp), (["uid": nil], .noUser),
                (["uid": ""], .noUser), (["uid": true], .noUser),
            ]
            return try cases.map { (try apps.issuers[app]!.token(Apps.claims(app, $0)), $1) }
        }
    }
}
