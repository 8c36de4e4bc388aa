import HTTPTypes
import Hummingbird
import HummingbirdTesting
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// `/v1/topics` from a client's view.
@Suite(.timeLimit(.minutes(2))) struct TopicRoutesTests {
    private typealias Send = @Sendable (HTTPRequest.Method, String) async throws -> (Int, JSONValue?)

    private static func withClient(
        _ body: @escaping @Sendable (@escaping Send) async throws -> Void
    ) async throws {
        let bearer = try await BearerKeys.shared(["sub": "a"])
        try await RoutesTests.withRoutes { client, _ in
            try await body { method, uri in
                try await client.execute(uri: uri, method: method, headers: RoutesTests.headers(bearer)) { response in
                    let answer = response.body.readableBytes == 0 ? Optional.none : try RoutesTests.json(response)
                    return (response.status.code, answer)
                }
            }
        }
    }

    @Test func `a user subscribes, reads the list, and unsubscribes, repeatedly`() async throws {
        try await Self.withClient { send in
            let none = try await send(.get, "/v1/topics")
            #expect(none.1 == ["topics": []])
            for topic in ["photos", "chat", "photos", "a%2Fb"] {
                let answer = try await send(.put, "/v1/topics/\(topic)")
                #expect(answer.0 == 204)
            }
            let three = try await send(.get, "/v1/topics")
            #expect(three.1 == ["topics": ["a/b", "chat", "photos"]])
            for _ in 0..<2 {
                let answer = try await send(.delete, "/v1/topics/chat")
                #expect(answer.0 == 204)
            }
            let two = try await send(.get, "/v1/topics")
            #expect(two.1 == ["topics": ["a/b", "photos"]])
        }
    }

    @Test func `an invalid topic or a missing user is rejected`() async throws {
        try await Self.withClient { send in
            for topic in ["a%20b", "%C3%A4", String(repeating: "x", count: 129)] {
                let answer = try await send(.put, "/v1/topics/\(topic)")
                #expect(answer.0 == 400 && answer.1?["detail"]?.string?.hasPrefix("the topic in the path") == true)
            }
        }
        try await RoutesTests.withRoutes { client, _ in
            try await client.execute(uri: "/v1/topics", method: .get) { #expect($0.status == .unauthorized) }
        }
    }

    @Test func `no user has more groups than the limit`() async throws {
        let bearer = try await BearerKeys.shared(["sub": "a"])
        try await RoutesTests.withRoutes { client, store in
            let app = AppID(rawValue: "shared")!
            try await MembershipStore(store.database).apply(
                (0..<MembershipStore.mostGroups).map {
                    AudienceFixture.member("a", .tag(AudienceFixture.name("t\($0)")), app: app)
                })
            for (uri, status) in [("/v1/topics/one-more", 422), ("/v1/topics/another", 422)] {
                try await client.execute(uri: uri, method: .put, headers: RoutesTests.headers(bearer)) {
                    #expect($0.status.code == status)
                }
            }
        }
    }

    @Test func `a user who leaves a group may join another, unless too many were left recently`() async throws {
        let bearer = try await BearerKeys.shared(["sub": "a"])
        try await RoutesTests.withRoutes { client, store in
            let memberships = MembershipStore(store.database)
            func tags(_ numbers: Range<Int>, joins: Bool) -> [MembershipStore.Change] {
                numbers.map {
                    AudienceFixture.member(
                        "a", .tag(AudienceFixture.name("t\($0)")), joins: joins, app: AppID(rawValue: "shared")!)
                }
            }
            func status(of uri: String) async throws -> Int {
                try await client.execute(uri: uri, method: .put, headers: RoutesTests.headers(bearer)) {
                    $0.status.code
                }
            }
            try await memberships.apply(tags(0..<MembershipStore.mostGroups, joins: true))
            try await memberships.apply(tags(0..<1, joins: false))
            let afterLeaving = try await status(of: "/v1/topics/one-more")
            #expect(afterLeaving == 204)
            try await memberships.apply(tags(0..<MembershipStore.mostRemembered, joins: false))
            let afterLeavingMany = try await status(of: "/v1/topics/another")
            #expect(afterLeavingMany == 422)
        }
    }
}
