import HTTPTypes
import PushProtocol
import Testing

@testable import Rules

/// `/v1/operator/preferences` over HTTP, with the API key of an app's backend.
@Suite(.timeLimit(.minutes(3))) struct BackendPreferencesTests {
    private static let path = "/v1/operator/preferences"
    private static let off: JSONValue = ["types": ["chat": false]]

    @Test func `a backend reads and changes the choices of a user, who then reads the same`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await http.key(1, for: [.readPreferences, .writePreferences])
            let own = "\(Self.path)?app=test&user=1"
            #expect(try await http.send(.get, own, user: key).body["chosen"] == [:])
            let changed = try await http.send(.patch, own, Self.off, user: key)
            #expect(changed.status == 200 && changed.body["chosen"] == Self.off)
            #expect(try await http.send(.get, "/v1/preferences", user: "1").body == changed.body)
            #expect(try await http.send(.get, own, user: key).body == changed.body)
            #expect(try await http.send(.get, "\(Self.path)?app=test&user=2", user: key).body["chosen"] == [:])
        }
    }

    @Test func `a key without the operation, of another app, or a user's token changes nothing`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let reader = try await http.key(1, for: [.readPreferences])
            let foreign = try await http.key(
                2, for: [.readPreferences, .writePreferences], app: AppID(rawValue: "other"))
            let own = "\(Self.path)?app=test&user=1"
            for (user, status) in [(reader, 403), (foreign, 403), ("1", 401), (nil, 401)] as [(String?, Int)] {
                #expect(try await http.send(.patch, own, Self.off, user: user).status == status)
            }
            #expect(try await http.send(.get, own, user: foreign).status == 403)
            #expect(try await http.send(.get, own, user: reader).body["chosen"] == [:])
        }
    }

    @Test func `an unknown app gets 404, and invalid queries and patches are rejected`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await http.key(1, for: [.readPreferences, .writePreferences], app: nil)
            for (query, status) in [
                ("app=unknown&user=1", 404), ("app=test", 400), ("user=1", 400), ("app=test&user=", 400),
            ] {
                #expect(try await http.send(.get, "\(Self.path)?\(query)", user: key).status == status, "\(query)")
                let change = try await http.send(.patch, "\(Self.path)?\(query)", Self.off, user: key)
                #expect(change.status == status, "\(query)")
            }
            let own = "\(Self.path)?app=test&user=1"
            for (patch, status) in [(["types": ["none": false]], 422), (["enabled": 1], 400)] as [(JSONValue, Int)] {
                #expect(try await http.send(.patch, own, patch, user: key).status == status)
            }
        }
    }
}
