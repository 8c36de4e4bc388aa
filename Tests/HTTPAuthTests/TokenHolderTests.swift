import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import HTTPAuth

/// Users' and publishers' tokens with the same key, issuer and audience.
@Suite struct TokenHolderTests {
    private static func refusal(
        _ holder: TokenHolder, _ claims: [String: JSONValue?]
    ) async throws -> BearerTokenError.Reason? {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let verifier = try await keys.verifier(of: holder)
        do {
            _ = try await verifier.verify(try await BearerKeys.shared(claims))
            return nil
        } catch let error as BearerTokenError { return error.reason }
    }

    @Test(
        arguments: [
            "events:publish", "notifications:send", "openid events:publish", ["events:publish", "notifications:send"],
        ] as [JSONValue])
    func `a scope that allows publishing makes a publisher's token, and never a user's`(scope: JSONValue) async throws {
        #expect(try await Self.refusal(.publisher, ["scope": scope]) == nil)
        #expect(try await Self.refusal(.user, ["scope": scope]) == .publisherToken)
        // Also if the rest of the claims would be refused.
        #expect(try await Self.refusal(.user, ["scope": scope, "event_types": 7]) == .publisherToken)
    }

    @Test(arguments: [nil, "", "openid", "events:read", "events:publisher", 7, ["openid", 7]] as [JSONValue?])
    func `any other scope makes a user's token, and never a publisher's`(scope: JSONValue?) async throws {
        #expect(try await Self.refusal(.user, ["scope": scope]) == nil)
        #expect(try await Self.refusal(.publisher, ["scope": scope]) == .noScope)
    }

    @Test(arguments: ["order.", 7, [7], [""], .null] as [JSONValue])
    func `event_types that is not a list of texts allows nothing`(types: JSONValue) async throws {
        #expect(try await Self.refusal(.publisher, ["scope": "events:publish", "event_types": types]) == .noScope)
    }

    @Test func `a publisher needs a name, and the claims of its configuration`() async throws {
        for (changes, reason) in [
            (["sub": .some(nil)], BearerTokenError.Reason.noUser), (["aud": "other"], .wrongAudience),
            (["exp": 1], .expired),
        ] as [([String: JSONValue?], BearerTokenError.Reason)] {
            #expect(try await Self.refusal(.publisher, changes.merging(["scope": "events:publish"]) { $1 }) == reason)
        }
    }

    @Test func `an app that is added twice is verified once`() async throws {
        let keys = try BearerKeys()
        defer { keys.remove() }
        let verifier = try await keys.verifier()
        for app in keys.catalog.apps { try await verifier.add(app) }
        #expect(verifier.keyCaches.count == 2)
        #expect(try await verifier.verify(try await BearerKeys.shared([:])).app.rawValue == "shared")
    }
}
