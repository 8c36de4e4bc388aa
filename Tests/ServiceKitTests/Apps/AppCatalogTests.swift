import PushProtocol
import ServiceKit
import Testing
import TestSupport

@Suite struct AppCatalogTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        try folder.write("portal.p8", "key")
        try folder.write("portal.json", "{}")
        try folder.write("portal.pem", "key")
    }

    private func problems(_ yaml: String) throws -> [String] {
        let path = try folder.write("apps.yaml", yaml)
        do {
            _ = try AppCatalog.load(path: path)
            return []
        } catch {
            return error.problems.map { $0.replacing(folder.path + "/", with: "") }
        }
    }

    @Test func `an app may have push certificates instead of a key, one for each environment`() throws {
        try folder.write("both.pem", "certificate and key")
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              old:
                apns:
                  topic: com.example.old
                  certificates:
                    production: { certificate-file: portal.pem, key-file: portal.p8 }
                    development: { certificate-file: both.pem }
            """)
        let app = try #require(try AppCatalog.load(path: path).apps.first?.apns)
        #expect(
            app.credential
                == .certificates([
                    .production: APNsCertificate(
                        certificateFile: "\(folder.path)/portal.pem", keyFile: "\(folder.path)/portal.p8"),
                    .development: APNsCertificate(
                        certificateFile: "\(folder.path)/both.pem", keyFile: "\(folder.path)/both.pem"),
                ]))
        #expect(app.environments == [.production, .development])
    }

    @Test func `origins of web clients are read as browsers send them`() throws {
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              a: { web-origins: ["https://portal.example", "http://localhost:3000"] }
              b: { web-origins: ["https://b.example:8443"] }
              c:
            """)
        let apps = ActiveApps(try AppCatalog.load(path: path))
        for origin in ["https://portal.example", "http://localhost:3000", "https://b.example:8443"] {
            #expect(apps.listsWebOrigin(origin))
        }
        for origin in ["https://portal.example:8443", "http://portal.example", "https://b.example", "null", ""] {
            #expect(!apps.listsWebOrigin(origin))
        }
    }

    @Test(arguments: [
        "http://portal.example", "https://Portal.example", "https://portal.example/", "https://portal.example:443",
        "http://localhost:80", "*", "null", "portal.example", "https://", "https://a b",
    ]) func `a text that no browser sends as an origin is rejected`(origin: String) throws {
        #expect(
            try problems("apps: { a: { web-origins: ['\(origin)'] } }") == [
                "apps.yaml:1: apps.a.web-origins[0]: “\(origin)” is not an origin such as https://portal.example or "
                    + "http://localhost:3000"
            ])
    }

    @Test func `only apps that the owner lists get its events`() throws {
        let path = try folder.write("apps.yaml", "apps: { shop: { events-to: [courier] }, courier: , kiosk: }")
        let apps = ActiveApps(try AppCatalog.load(path: path))
        let (shop, courier, kiosk) = (AppID(rawValue: "shop")!, AppID(rawValue: "courier")!, AppID(rawValue: "kiosk")!)
        #expect(apps.sharesEvents(of: shop, with: courier))
        for (owner, borrower) in [(shop, kiosk), (courier, shop), (shop, shop)] {
            #expect(!apps.sharesEvents(of: owner, with: borrower))
        }
    }

    @Test(arguments: ["shop", "No App"]) func `a text that is no other app's id gets no events`(name: String) throws {
        #expect(
            try problems("apps: { shop: { events-to: ['\(name)'] } }") == [
                "apps.yaml:1: apps.shop.events-to[0]: “\(name)” is not the id of another app"
            ])
    }

    @Test func `an app with both a key and certificates, or with neither, is rejected`() throws {
        #expect(
            try problems(
                """
                apps:
                  a:
                    apns:
                      topic: com.example.a
                      key-id: ABCDE12345
                      certificates: { moon: { certificate-file: portal.pem } }
                  b:
                    apns: { topic: com.example.b, certificates: {} }
                  c:
                    apns: { topic: com.example.c, certificates: { production: { key-file: portal.p8 } } }
                """) == [
                    "apps.yaml:5: apps.a.apns.key-id: unknown key; known keys: topic, certificates",
                    "apps.yaml:6: apps.a.apns.certificates.moon: unknown key; known keys: production, development",
                    "apps.yaml:8: apps.b.apns.certificates: names no environment: production, development or both",
                    "apps.yaml:10: apps.c.apns.certificates.production: “certificate-file” is missing",
                ])
    }

    @Test func `an app with all settings is read`() throws {
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              family-portal:
                apns:
                  topic: com.example.family
                  key-id: ABCDE12345
                  team-id: FGHIJ67890
                  key-file: portal.p8
                  environments: [production]
                fcm:
                  service-account-file: portal.json
                  messages-per-minute: 1200000
                bearer:
                  - algorithm: ES256
                    key-file: portal.pem
                    issuer: https://portal.example
                    audience: push
                    user-claim: uid
                    leeway: 5s
              bare:
            """)
        let catalog = try AppCatalog.load(path: path)
        #expect(catalog.ids.map(\.rawValue) == ["bare", "family-portal"])
        let id = try #require(AppID(rawValue: "family-portal"))
        let portal = try #require(catalog[id])
        #expect(
            portal.apns
                == APNsAppConfiguration(
                    topic: "com.example.family", keyID: "ABCDE12345", teamID: "FGHIJ67890",
                    keyFile: "\(folder.path)/portal.p8", environments: [.production]))
        #expect(
            portal.fcm
                == FCMAppConfiguration(serviceAccountFile: "\(folder.path)/portal.json", messagesPerMinute: 1_200_000))
        #expect(
            portal.bearer == [
                BearerVerification(
                    algorithm: .es256, keys: .file("\(folder.path)/portal.pem"), issuer: "https://portal.example",
                    audience: "push", userClaim: "uid", leeway: .seconds(5))
            ])
    }

    @Test(arguments: ["999", "-1", "1e6", "1000000001", "many"])
    func `a quota out of range is rejected`(quota: String) throws {
        let found = try problems(
            """
            apps:
              portal:
                fcm:
                  service-account-file: portal.json
                  messages-per-minute: \(quota)
            """)
        let path = "apps.yaml:5: apps.portal.fcm.messages-per-minute"
        #expect(found == ["\(path): “\(quota)” is not a whole number from 1000 to 1000000000"])
    }

    @Test func `an app without credentials is valid, and defaults apply`() throws {
        let path = try folder.write(
            "apps.yaml",
            "apps:\n  bare:\n  other:\n    bearer:\n      - algorithm: HS256\n        key-file: portal.pem\n")
        let catalog = try AppCatalog.load(path: path)
        #expect(catalog.apps[0] == AppConfiguration(id: try #require(AppID(rawValue: "bare"))))
        #expect(catalog.apps[1].bearer[0].userClaim == "sub")
        #expect(catalog.apps[1].bearer[0].leeway == .seconds(30))
    }

    @Test func `an unknown key is rejected with its line and a suggestion`() throws {
        #expect(
            try problems(
                """
                apps:
                  family-portal:
                    apns:
                      topc: com.example.family
                      key-id: ABCDE12345
                      team-id: FGHIJ67890
                      key-file: portal.p8
                """) == [
                    "apps.yaml:4: apps.family-portal.apns.topc: unknown key; did you mean “topic”?",
                    "apps.yaml:3: apps.family-portal.apns: “topic” is missing",
                ])
    }

    @Test func `all problems are reported at once`() throws {
        #expect(
            try problems(
                """
                apps:
                  Family:
                  portal:
                    apns:
                      topic: [a]
                      key-id: short
                      team-id: FGHIJ67890
                      key-file: missing.p8
                      environments: [production, moon]
                    bearer:
                      algorithm: ES256
                  third:
                    bearer:
                      - algorithm: none
                        key-file: portal.pem
                        leeway: 30
                version: 1
                """) == [
                    "apps.yaml:17: version: unknown key; known keys: apps",
                    "apps.yaml:2: apps.Family: is not an app id: 1–63 characters of a–z, 0–9 and -, not starting with -",
                    "apps.yaml:5: apps.portal.apns.topic: expected a text",
                    "apps.yaml:6: apps.portal.apns.key-id: “short” is not a 10-character id of A–Z and 0–9",
                    "apps.yaml:8: apps.portal.apns.key-file: missing.p8 is not a file that exists and can be read",
                    "apps.yaml:9: apps.portal.apns.environments[1]: “moon” is not one of production, development",
                    "apps.yaml:10: apps.portal.bearer: expected a list",
                    "apps.yaml:14: apps.third.bearer[0].algorithm: “none” is not one of ES256, RS256, HS256",
                    "apps.yaml:16: apps.third.bearer[0].leeway: “30” is not a duration from 0s to 10m, such as 250ms, 5s, 2m or 1h",
                ])
    }

    @Test func `only missing files that the process uses are reported`() throws {
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              certified:
                apns:
                  topic: com.example.certified
                  certificates: { production: { certificate-file: no.pem, key-file: no.key } }
              portal:
                apns: { topic: com.example, key-id: ABCDE12345, team-id: FGHIJ67890, key-file: no.p8 }
                fcm: { service-account-file: no.json }
                bearer: [{ algorithm: ES256, key-file: no.pub }]
                publishers: [{ algorithm: ES256, key-file: no.backend }]
            """)
        func missing(_ files: AppCatalog.Files) -> [String] {
            do {
                _ = try AppCatalog.load(path: path, using: files)
                return []
            } catch {
                // “apps.yaml:5: apps.….key-file: …/no.key is not a file …”
                return error.problems.map { String($0.split(separator: " ")[2].split(separator: "/").last ?? "") }
            }
        }
        #expect(missing([]) == [])
        #expect(missing(.bearer) == ["no.pub"])
        #expect(missing(.publishers) == ["no.backend"])
        #expect(missing(.fcm) == ["no.json"])
        // Only the first of the missing pair is reported.
        #expect(Set(missing(.apns)) == ["no.pem", "no.p8"])
        #expect(missing(.all).count == 5)
        let portal = try #require(try AppCatalog.load(path: path, using: []).apps.last)
        #expect(portal.fcm?.serviceAccountFile == folder.path + "/no.json")
    }

    @Test func `bearer keys may be a JWK set at a URL, and a claim may name the app`() throws {
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              portal:
                bearer:
                  - { algorithm: RS256, jwks-url: "https://id.example/jwks.json", app-claim: azp, app-value: client-1 }
                  - { algorithm: HS256, key-file: portal.pem, app-claim: app }
            """)
        let bearer = try AppCatalog.load(path: path).apps[0].bearer
        #expect(
            bearer == [
                BearerVerification(
                    algorithm: .rs256, keys: .url("https://id.example/jwks.json"),
                    appClaim: .init("azp", is: "client-1")),
                BearerVerification(
                    algorithm: .hs256, keys: .file("\(folder.path)/portal.pem"), appClaim: .init("app", is: "portal")),
            ])
    }

    @Test func `bearer keys without audience, and with no location or two, are rejected`() throws {
        #expect(
            try problems(
                """
                apps:
                  a:
                    bearer:
                      - { algorithm: ES256, jwks-url: "https://id.example/" }
                      - { algorithm: ES256, audience: push }
                      - { algorithm: ES256, audience: push, key-file: portal.pem, jwks-url: "https://id.example/" }
                      - { algorithm: HS256, audience: push, jwks-url: "https://id.example/" }
                      - { algorithm: ES256, audience: push, jwks-url: id.example }
                      - { algorithm: ES256, key-file: portal.pem, app-value: b }
                """) == [
                    "apps.yaml:4: apps.a.bearer[0].jwks-url: requires an audience or an app-claim: "
                        + "its keys also sign tokens for others",
                    "apps.yaml:5: apps.a.bearer[1]: “key-file” or “jwks-url” is missing",
                    "apps.yaml:6: apps.a.bearer[2].jwks-url: is set together with a key-file: set only one of them",
                    "apps.yaml:7: apps.a.bearer[3].jwks-url: HS256 needs a key-file: "
                        + "a shared secret must not be published",
                    "apps.yaml:8: apps.a.bearer[4].jwks-url: “id.example” is not an https URL",
                    "apps.yaml:9: apps.a.bearer[5].app-value: has no app-claim: name the claim to compare it with",
                ])
    }

    @Test func `publishers have keys of their own, whose tokens name no user`() throws {
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              portal:
                publishers:
                  - { algorithm: HS256, key-file: portal.pem, issuer: portal, audience: events, leeway: 5s }
            """)
        let portal = try AppCatalog.load(path: path).apps[0]
        #expect(portal.bearer.isEmpty)
        #expect(
            portal.publishers == [
                BearerVerification(
                    algorithm: .hs256, keys: .file("\(folder.path)/portal.pem"), issuer: "portal", audience: "events",
                    leeway: .seconds(5))
            ])
        #expect(
            try problems(
                """
                apps:
                  a:
                    publishers:
                      - { algorithm: HS256, key-file: portal.pem, user-claim: uid }
                """
            ).first?.hasPrefix("apps.yaml:4: apps.a.publishers[0]") == true)
    }

    @Test func `a repeated app is rejected`() throws {
        let found = try problems("apps:\n  a:\n  b:\n  a:\n")
        #expect(found.count == 1)
        #expect(found.first?.contains("a: occurs more than once") == true, "\(found)")
    }

    @Test(arguments: ["", "apps: [", "apps: *nowhere", "- a\n- b\n", "apps: 3\n"])
    func `a malformed catalog is rejected with its line`(yaml: String) throws {
        let found = try problems(yaml)
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.contains(#/^apps.yaml:[0-9]+: /#) == true, "\(found)")
    }

    @Test func `an oversized file and exponentially nested aliases are rejected`() throws {
        let folder = try TemporaryFolder()
        let large = try folder.write("large.yaml", String(repeating: "#", count: AppCatalog.maximumFileSize + 1))
        #expect(
            throws: ConfigurationError("\(large): has 1048577 bytes; the maximum is 1048576")
        ) { try AppCatalog.load(path: large) }
        let lines = (1...30).map { "a\($0): &a\($0) [*a\($0 - 1), *a\($0 - 1), *a\($0 - 1), *a\($0 - 1)]" }
        let laughs = try folder.write("laughs.yaml", (["a0: &a0 1"] + lines).joined(separator: "\n"))
        #expect(throws: ConfigurationError("\(laughs):1: its aliases expand to more than 2000000 nodes")) {
            try AppCatalog.load(path: laughs)
        }
    }

    @Test func `a missing catalog is rejected`() {
        #expect(throws: ConfigurationError("/nowhere/apps.yaml: cannot be read (ENOENT)")) {
            try AppCatalog.load(path: "/nowhere/apps.yaml")
        }
    }
}
