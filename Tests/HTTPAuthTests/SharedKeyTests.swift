import Foundation
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import HTTPAuth

/// Apps that share an identity provider.
@Suite struct SharedKeyTests {
    static func verify(
        _ claims: JSONValue, one: BearerVerification.RequiredClaim?, other: BearerVerification.RequiredClaim?
    ) async throws -> Result<String, BearerTokenError> {
        let folder = try TemporaryFolder()
        let issuer = try await Issuer.hmac(BearerKeys.secret)
        let path = try folder.write("secret", issuer.material)
        let verifier = try await BearerVerifier(
            AppCatalog(
                [("one", one), ("other", other)].map { name, claim in
                    AppConfiguration(
                        id: AppID(rawValue: name)!,
                        bearer: [BearerVerification(algorithm: .hs256, keys: .file(path), appClaim: claim)])
                }), logger: .silent)
        let members: JSONValue = ["sub": "456", "exp": .int(Int64(Date().timeIntervalSince1970) + 3600)]
        let token = try issuer.token(members.merging(claims))
        do {
            return .success(try await verifier.verify(token).app.rawValue)
        } catch { return .failure(error) }
    }

    @Test func `an app that is added is verified from then on, and one with an unusable key changes nothing`()
        async throws
    {
        let folder = try TemporaryFolder()
        let issuer = try await Issuer.hmac(BearerKeys.secret)
        let path = try folder.write("secret", issuer.material)
        func app(_ name: String, _ file: String) throws -> AppConfiguration {
            AppConfiguration(
                id: try #require(AppID(rawValue: name)),
                bearer: [BearerVerification(algorithm: .hs256, keys: .file(file), appClaim: .init("azp", is: name))])
        }
        let verifier = try await BearerVerifier(AppCatalog([]), logger: .silent)
        let members: JSONValue = ["sub": "456", "exp": .int(Int64(Date().timeIntervalSince1970) + 3600)]
        let token = try issuer.token(members.merging(["azp": "late"]))
        await #expect(throws: BearerTokenError.self) { try await verifier.verify(token) }
        await #expect(throws: ConfigurationError.self) { try await verifier.add(try app("bad", "/nowhere")) }
        #expect(verifier.keyCaches.isEmpty)
        try await verifier.add(try app("late", path))
        #expect(try await verifier.verify(token).app.rawValue == "late")
        try await verifier.add(try app("later", path))
        #expect(verifier.keyCaches.count == 1)
        #expect(try await verifier.verify(token).app.rawValue == "late")
    }

    @Test func `the app claim decides the app`() async throws {
        for (value, app) in [("one", "one"), ("second", "other")] {
            let answer = try await Self.verify(
                ["azp": .string(value)], one: .init("azp", is: "one"), other: .init("azp", is: "second"))
            #expect(answer == .success(app))
        }
        let stray = try await Self.verify(
            ["azp": "third"], one: .init("azp", is: "one"), other: .init("azp", is: "second"))
        #expect((stray.failure)?.reason == .wrongApp)
    }

    @Test func `a token valid for both apps is rejected`() async throws {
        let plain = try await Self.verify([:], one: nil, other: nil)
        #expect(plain == .failure(BearerTokenError(.ambiguousApp)))
        let both = try await Self.verify(
            ["azp": ["one", "other"]], one: .init("azp", is: "one"), other: .init("azp", is: "other"))
        #expect(both == .failure(BearerTokenError(.ambiguousApp)))
    }

    @Test func `of two rejections the more specific one is reported`() async throws {
        let answer = try await Self.verify(["sub": nil], one: .init("azp", is: "one"), other: nil)
        #expect(answer == .failure(BearerTokenError(.noUser, app: AppID(rawValue: "other")!)))
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
