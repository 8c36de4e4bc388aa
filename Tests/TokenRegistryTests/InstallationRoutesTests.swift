import FoundationEssentials
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// `/v1/installations` from a client's view.
@Suite(.timeLimit(.minutes(2))) struct InstallationRoutesTests {
    static let phone = "/v1/installations/phone"
    static let two = """
        {"locale":"de-CH","time_zone":"Europe/Zurich","app_version":"4.2","registrations":[
            {"kind":"alert","token":"AA","environment":"production"},
            {"kind":"voip","token":"bb","environment":"development","topic":"com.example.voip"}]}
        """

    private static func one(_ token: String, kind: String = "alert") -> String {
        #"{"registrations":[{"kind":"\#(kind)","token":"\#(token)","environment":"production"}]}"#
    }

    /// A client's requests and responses.
    private struct Phone {
        let client: any TestClientProtocol
        let bearer: String?

        func send(
            _ method: HTTPRequest.Method, _ uri: String, _ body: String? = nil
        ) async throws -> (status: HTTPResponse.Status, answer: JSONValue?, headers: HTTPFields) {
            try await client.execute(
                uri: uri, method: method, headers: RoutesTests.headers(bearer), body: body.map(ByteBuffer.init(string:))
            ) { response in
                let answer = response.body.readableBytes == 0 ? Optional.none : try RoutesTests.json(response)
                return (response.status, answer, response.headers)
            }
        }
    }

    private static func withPhones(
        _ body: @escaping @Sendable (_ a: Phone, _ b: Phone, RegistrationStore) async throws -> Void
    ) async throws {
        let a = try await BearerKeys.shared(["sub": "a"])
        let b = try await BearerKeys.shared(["sub": "b"])
        try await RoutesTests.withRoutes { client, store in
            try await body(Phone(client: client, bearer: a), Phone(client: client, bearer: b), store)
        }
    }

    private static let app = AppID(rawValue: "shared")!

    @Test func `an FCM registration keeps the platform it was sent with, and an APNs one has none`() async throws {
        try await Self.withPhones { a, _, store in
            let body = #"""
                {"registrations":[{"kind":"fcm-token","token":"t","platform":"ios"},{"kind":"fid","token":"f","platform":null},
                    {"kind":"alert","token":"aa","environment":"production"}]}
                """#
            let put = try await a.send(.put, "/v1/installations/phone", body)
            let told = put.answer?["registrations"]?.array?.map {
                "\($0["kind"]?.string ?? "") \($0["platform"]?.string ?? "-")"
            }
            #expect(Set(told ?? []) == ["fcm-token ios", "fid -", "alert -"])
            let other = try await a.send(
                .put, "/v1/installations/phone", #"{"registrations":[{"kind":"fid","token":"f","platform":"wii"}]}"#)
            let words = other.answer?["detail"]?.string ?? ""
            #expect(other.status == .badRequest && words.contains("registrations[0].platform is invalid"))
            _ = try await a.send(
                .post, "\(RoutesTests.path)/register", #"{"token":"x","platform":"android","environment":"production"}"#
            )
            let records = try await store.records(of: StoreFixture.user("a", app: Self.app))
            let platforms = Dictionary(
                uniqueKeysWithValues: records.map { ($0.registration.token.secret, $0.platform) })
            #expect(platforms == ["t": .ios, "f": nil, "aa": nil, "x": .android])
        }
    }

    @Test func `the Live Activity of another user is refused with the reason, and the rest is stored`() async throws {
        try await Self.withPhones { a, b, _ in
            let activity = #"{"kind":"live-activity","token":"dd","environment":"production","scope":"order-1"}"#
            let alert = #"{"kind":"alert","token":"ee","environment":"production"}"#
            let mine = try await a.send(.put, Self.phone, "{\"registrations\":[\(activity)]}")
            #expect(mine.status == .created && mine.answer?["refused"] == Optional.none)
            let other = try await b.send(
                .put, "/v1/installations/other", "{\"registrations\":[\(activity),\(alert)]}")
            #expect(other.status == .created && other.answer?["registrations"]?.array?.count == 1)
            let refused = try #require(other.answer?["refused"]?.array?.first)
            #expect(refused["kind"] == "live-activity" && refused["scope"] == "order-1")
            #expect(refused["reason"]?.string?.contains("another user") == true)
        }
    }

    @Test func `a registration without an installation ends by its id, for its own user and app only`() async throws {
        try await Self.withPhones { a, b, store in
            let mine = StoreFixture.user("a", app: Self.app)
            let elsewhere = StoreFixture.user("a")
            try await store.register([
                StoreFixture.claim("a", "aa", app: Self.app), StoreFixture.claim("a", "bb"),
            ])
            let listed = try await a.send(.get, "/v1/installations")
            let id = try #require(listed.answer?["registrations"]?.array?.first?["id"]?.string)
            let other = try #require(try await store.records(of: elsewhere).first).registration.device
            for (phone, uri, status) in [
                (b, id, HTTPResponse.Status.noContent), (a, other.uuidString, .noContent), (a, "7", .badRequest),
            ] {
                #expect(try await phone.send(.delete, "/v1/registrations/\(uri)").status == status)
            }
            #expect(try await store.tokens(of: "a", app: Self.app) == ["aa"])
            #expect(try await store.records(of: elsewhere).map(\.state) == [.active])
            for _ in 1...2 {
                #expect(try await a.send(.delete, "/v1/registrations/\(id)").status == .noContent)
            }
            #expect(try await store.tokens(of: "a", app: Self.app).isEmpty)
            #expect(try await store.records(of: mine).map(\.state) == [.signedOut])
        }
    }

    @Test func `an installation is created, read, replaced and ended`() async throws {
        try await Self.withPhones { phone, _, store in
            let created = try await phone.send(.put, Self.phone, Self.two)
            #expect(created.status == .created)
            #expect(created.answer?["locale"] == "de-CH" && created.answer?["time_zone"] == "Europe/Zurich")
            let read = try await phone.send(.get, Self.phone)
            #expect(read.status == .ok && read.answer == created.answer)
            let registrations = try #require(read.answer?["registrations"]?.array)
            #expect(registrations.map { $0["kind"]?.string } == ["alert", "voip"])
            #expect(registrations.map { $0["token"]?.string } == ["aa… (2 characters)", "bb… (2 characters)"])
            #expect(registrations.map { $0["environment"]?.string } == ["production", "development"])
            #expect(registrations.map { $0["topic"] } == [JSONValue.null, "com.example.voip"])

            let replaced = try await phone.send(.put, Self.phone, Self.one("cc"))
            #expect(replaced.status == .ok && replaced.answer?["registrations"]?.array?.count == 1)
            #expect(replaced.answer?["locale"] == JSONValue.null)
            #expect(try await store.tokens(of: "a", app: Self.app) == ["cc"])
            let states = try await store.records(of: StoreFixture.user("a", app: Self.app)).map(\.reason)
            #expect(Set(states) == [nil, "the token changed", "the installation dropped it"])

            for _ in 1...2 {
                let ended = try await phone.send(.delete, Self.phone)
                #expect(ended.status == .noContent && ended.answer == Optional.none)
            }
            #expect(try await store.tokens(of: "a", app: Self.app).isEmpty)
            #expect(try await phone.send(.get, Self.phone).status == .notFound)
            #expect(try await phone.send(.put, Self.phone, Self.one("cc")).status == .created)
        }
    }

    @Test func `a list has the installations, and separately the registrations without one`() async throws {
        try await Self.withPhones { phone, _, _ in
            let empty = try await phone.send(.get, "/v1/installations")
            #expect(empty.status == .ok && empty.answer == ["installations": [], "registrations": []])
            _ = try await phone.send(.put, Self.phone, Self.two)
            _ = try await phone.send(.put, "/v1/installations/a%2Fb%25", Self.one("ee"))
            _ = try await phone.send(
                .post, "\(RoutesTests.path)/register", #"{"token":"dd","platform":"ios","environment":"production"}"#)
            let list = try #require(try await phone.send(.get, "/v1/installations").answer)
            #expect(list["installations"]?.array?.map { $0["id"]?.string } == ["a/b%", "phone"])
            #expect(list["installations"]?.array?.map { $0["registrations"]?.array?.count } == [1, 2])
            #expect(list["registrations"]?.array?.map { $0["token"]?.string } == ["dd… (2 characters)"])
        }
    }

    @Test func `another user's installation is hidden and protected, and a new sign-in takes it over`() async throws {
        try await Self.withPhones { a, b, store in
            _ = try await a.send(.put, Self.phone, Self.two)
            #expect(try await b.send(.get, Self.phone).status == .notFound)
            #expect(try await b.send(.get, "/v1/installations").answer?["installations"] == [])
            #expect(try await b.send(.delete, Self.phone).status == .noContent)
            #expect(try await store.tokens(of: "a", app: Self.app) == ["aa", "bb"])

            #expect(try await b.send(.put, Self.phone, Self.one("aa")).status == .created)
            #expect(try await store.tokens(of: "a", app: Self.app).isEmpty)
            #expect(try await store.tokens(of: "b", app: Self.app) == ["aa"])
            #expect(try await a.send(.get, Self.phone).status == .notFound)
        }
    }

    @Test func `parallel replacements leave the registrations of exactly one of them`() async throws {
        try await Self.withPhones { phone, _, store in
            try await withThrowingTaskGroup(of: HTTPResponse.Status.self) { group in
                for n in 10..<50 {
                    group.addTask {
                        try await phone.send(
                            .put, Self.phone,
                            """
                            {"registrations":[{"kind":"alert","token":"a0\(n)","environment":"production"},
                                {"kind":"voip","token":"b0\(n)","environment":"production"}]}
                            """
                        ).status
                    }
                }
                var created = 0
                for try await status in group {
                    #expect(status == .ok || status == .created)
                    if status == .created { created += 1 }
                }
                #expect(created == 1)
            }
            let tokens = try await store.tokens(of: "a", app: Self.app)
            #expect(tokens.count == 2 && Set(tokens.map { $0.dropFirst() }).count == 1, "\(tokens)")
        }
    }

    @Test(arguments: [
        ("{", HTTPResponse.Status.badRequest, "not JSON"),
        ("[]", .badRequest, "the body is invalid: expected an object"),
        ("{}", .badRequest, "registrations is missing"),
        (#"{"registrations":[]}"#, .badRequest, "1–32"),
        (#"{"registrations":[7]}"#, .badRequest, "registrations[0] is invalid: expected an object"),
        (#"{"registrations":[{"kind":"fid","token":"x"}],"time-zone":"UTC"}"#, .badRequest, "time_zone"),
        (one("xyz"), .badRequest, "registrations[0].token is invalid: an APNs device token is hexadecimal"),
        (one("aa", kind: "pager"), .badRequest, "registrations[0].kind is invalid: expected one of alert, voip"),
        (one("aa", kind: "fid"), .badRequest, "has an unknown member; known are kind, token"),
        (#"{"registrations":[{"kind":"alert","token":"aa"}]}"#, .badRequest, "registrations[0].environment is missing"),
        (
            #"{"registrations":[{"kind":"alert","token":"aa","environment":"production","scope":"a b"}]}"#, .badRequest,
            "registrations[0].scope is invalid"
        ),
        (
            #"{"registrations":[{"kind":"fid","token":"x"},{"kind":"fcm-token","token":"x"}]}"#, .unprocessableContent,
            "registrations[1].token is invalid: registrations[0] has the same"
        ),
        (
            #"{"registrations":[{"kind":"fid","token":"x"},{"kind":"fid","token":"y"}]}"#, .unprocessableContent,
            "registrations[1].kind is invalid: registrations[0] has the same kind and scope"
        ),
        (#"{"x":"\#(String(repeating: "a", count: InstallationBody.maximumSize))"}"#, .contentTooLarge, "163840 bytes"),
    ])
    func `a bad body gets a problem with the member and reason, and changes nothing`(
        body: String, status: HTTPResponse.Status, words: String
    ) async throws {
        try await Self.withPhones { phone, _, store in
            let refused = try await phone.send(.put, Self.phone, body)
            #expect(refused.status == status)
            #expect(refused.headers[.contentType] == "application/problem+json")
            #expect(refused.answer?["status"] == .int(Int64(status.code)) && refused.answer?["type"] == "about:blank")
            let detail = refused.answer?["detail"]?.string ?? ""
            #expect(detail.contains(words), "\(detail)")
            #expect(try await store.tokens(of: "a", app: Self.app).isEmpty)
        }
    }

    @Test func `the largest documented body is accepted`() async throws {
        let entries = (0..<InstallationBody.maximumRegistrations).map { n in
            let token = String(repeating: "ab", count: 255) + "\(10 + n)"
            let topic = String(repeating: "t", count: 255)
            let scope = "\(10 + n)" + String(repeating: "s", count: 126)
            return #"{"kind":"live-activity","token":"\#(token)","environment":"production","#
                + #""topic":"\#(topic)","scope":"\#(scope)"}"#
        }
        try await Self.withPhones { phone, _, _ in
            let put = try await phone.send(.put, Self.phone, #"{"registrations":[\#(entries.joined(separator: ","))]}"#)
            #expect(put.status == .created, "\(put.answer ?? nil)")
            #expect(put.answer?["registrations"]?.array?.count == InstallationBody.maximumRegistrations)
        }
    }

    @Test func `without a valid token every request gets 401`() async throws {
        try await RoutesTests.withRoutes { client, _ in
            for bearer in [nil, "x"] {
                let stranger = Phone(client: client, bearer: bearer)
                for (method, uri) in [
                    (HTTPRequest.Method.get, "/v1/installations"), (.get, Self.phone), (.put, Self.phone),
                    (.delete, Self.phone),
                ] {
                    let refused = try await stranger.send(method, uri, Self.two)
                    #expect(refused.status == .unauthorized)
                    #expect(refused.headers[.wwwAuthenticate]?.hasPrefix("Bearer") == true)
                    #expect(refused.headers[.contentType] == "application/problem+json")
                }
            }
        }
    }

    @Test(arguments: ["a%20b", "%C3%BC", String(repeating: "a", count: 129), "%zz"])
    func `an invalid installation id gets 400`(id: String) async throws {
        try await Self.withPhones { phone, _, _ in
            for method in [HTTPRequest.Method.get, .put, .delete] {
                let refused = try await phone.send(method, "/v1/installations/\(id)", Self.two)
                #expect(refused.status == .badRequest)
                #expect(refused.answer?["detail"]?.string?.contains("visible ASCII") == true)
            }
        }
    }
}
