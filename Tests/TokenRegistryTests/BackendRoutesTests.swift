import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// A backend registers devices of its users, and `type` subscribes to a topic.
@Suite(.timeLimit(.minutes(2))) struct BackendRoutesTests {
    private static let uri = "/v1/operator/devices?app=family-portal&user=a"
    private static let away = "/v1/operator/devices/unregister?app=family-portal&user=a"

    private static func body(_ token: String, type: String? = nil) -> ByteBuffer {
        let type = type.map { #","type":\#($0)"# } ?? ""
        return ByteBuffer(string: #"{"token":"\#(token)","platform":"ios","environment":"production"\#(type)}"#)
    }

    @Test func `with a key, a backend registers, replaces and signs out a user's device`() async throws {
        try await RoutesTests.withRoutes { client, store in
            let key = APIKeyAuthenticatorTests.key(1)
            try await APIKeyAuthenticatorTests.keep(key, [.registerDevices], store.database)
            func send(_ uri: String, _ token: String) async throws -> JSONValue {
                var headers = RoutesTests.headers(key.secret)
                headers[HTTPField.Name("X-Client-Id")!] = "7d0e0f52-3a30-4a3f-8d3c-0d3bd9a0b7c1"
                return try await client.execute(uri: uri, method: .post, headers: headers, body: Self.body(token)) {
                    #expect($0.status == .ok)
                    return try RoutesTests.json($0)
                }
            }
            #expect(try await send(Self.uri, "aa") == ["registered": true, "new": true])
            #expect(try await send(Self.uri, "aa") == ["registered": true, "new": false])
            #expect(try await store.tokens(of: "a") == ["aa"])
            #expect(try await send(Self.uri, "bb") == ["registered": true, "new": true])
            #expect(try await store.tokens(of: "a") == ["bb"])
            #expect(try await send(Self.away, "bb") == ["unregistered": true])
            #expect(try await send(Self.away, "bb") == ["unregistered": false])
            #expect(try await store.tokens(of: "a").isEmpty)
        }
    }

    @Test func `a key for another operation or app, or an unconfigured app, is rejected`() async throws {
        try await RoutesTests.withRoutes { client, store in
            let (reader, elsewhere, all) = (
                APIKeyAuthenticatorTests.key(1), APIKeyAuthenticatorTests.key(2), APIKeyAuthenticatorTests.key(3)
            )
            try await APIKeyAuthenticatorTests.keep(reader, [.readDevices], store.database)
            try await APIKeyAuthenticatorTests.keep(
                elsewhere, [.registerDevices], app: AppID(rawValue: "other"), store.database)
            try await APIKeyAuthenticatorTests.keep(all, [.registerDevices], app: nil, store.database)
            let unknown = "/v1/operator/devices?app=unknown&user=a"
            for (key, uri, status) in [
                (reader, Self.uri, HTTPResponse.Status.forbidden), (elsewhere, Self.uri, .forbidden),
                (all, unknown, .notFound), (all, Self.uri, .ok),
            ] {
                try await client.execute(
                    uri: uri, method: .post, headers: RoutesTests.headers(key.secret), body: Self.body("aa")
                ) { #expect($0.status == status) }
            }
        }
    }

    @Test func `type joins the topic at register and leaves it at unregister`() async throws {
        let token = try await BearerKeys.shared([:])
        try await RoutesTests.withRoutes { client, store in
            let user = AppUser(app: AppID(rawValue: "shared")!, user: UserID(rawValue: "456")!)
            let topics = MembershipStore(store.database)
            func send(_ verb: String, _ type: String?) async throws -> HTTPResponse.Status {
                try await client.execute(
                    uri: "\(RoutesTests.path)/\(verb)", method: .post, headers: RoutesTests.headers(token),
                    body: Self.body("aa", type: type)
                ) { $0.status }
            }
            let photos = "\"photos\""
            var status = try await send("register", photos)
            #expect(status == .ok)
            #expect(try await topics.topics(of: user).map(\.rawValue) == ["photos"])
            for type in [nil, "null"] {
                status = try await send("register", type)
                #expect(status == .ok)
            }
            #expect(try await topics.topics(of: user).map(\.rawValue) == ["photos"])
            for type in ["7", "\"\"", "\"no topic\"", "[]"] {
                status = try await send("register", type)
                #expect(status == .badRequest, "\(type)")
            }
            status = try await send("unregister", photos)
            #expect(status == .ok)
            #expect(try await topics.topics(of: user).isEmpty)
            #expect(try await store.tokens(of: "456", app: user.app).isEmpty)
        }
    }
}
