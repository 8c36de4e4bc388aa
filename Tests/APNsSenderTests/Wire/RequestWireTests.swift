import Foundation
import Messaging
import Providers
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import APNsSender

/// The request vectors (ProviderFacts.md §E.1) from the stage's handler to the simulator.
@Suite(.timeLimit(.minutes(2))) struct RequestWireTests {
    private static func fields(_ request: JSONValue) -> [String: String] {
        (request["headers"]?.object ?? [:]).compactMapValues(\.string).filter { $0.key.hasPrefix("apns-") }
    }

    @Test func `A01 to A26: the simulator receives every vector's request and accepts it`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            for vector in RequestVector.all {
                let target = Push.Target.sample(token: vector.token)
                let push = Push.sample(
                    vector.content, expiresAt: vector.lifetime.map { sender.time.now + $0 }, targets: [target])
                let result = try await sender.send(push)
                #expect(
                    result.answers == [.accepted(id: ProviderMessageID(target.pushID))], "\(vector.name)")
                let request = try #require(try await apns.requests().last)
                #expect(request["status"] == 200, "\(vector.name): \(request)")
                #expect(request["method"] == "POST")
                #expect(request["path"] == .string("/3/device/\(vector.hexToken)"), "\(vector.name)")
                #expect(Self.fields(request) == vector.headers(to: target, now: sender.time.now), "\(vector.name)")
                #expect(request["headers"]?["authorization"]?.string?.hasPrefix("bearer ") == true)
                let body = try WireCoding.decode(JSONValue.self, from: Array(vector.body.utf8))
                #expect(request["body"] == body, "\(vector.name)")
                // The preview of the same push.
                let preview = try PayloadPreview(push, bundle: "com.example.app", now: sender.time.now).request.get()
                #expect(preview.body == Array(vector.body.utf8), "\(vector.name)")
                let shown = Set(Self.fields(request).map { "\($0): \($1)" })
                #expect(Set(preview.headers) == shown, "\(vector.name)")
            }
        }
    }

    @Test func `A05 A12 A13 A18 A25 A28 A29: invalid pushes are rejected and not sent`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            for vector in RejectedVector.all {
                let result = try await sender.send(.sample(vector.content))
                #expect(result.disposition == .done)
                #expect(result.answers == [.rejected(reason: vector.reason, suspectToken: false)], "\(vector.name)")
                let preview = PayloadPreview(.sample(vector.content), bundle: "com.example.app", now: sender.time.now)
                #expect(preview.rejectionReason == vector.reason, "\(vector.name)")
            }
            for token in ["zz01", "", "abc"] {
                let result = try await sender.send(.sample(targets: [.sample(token: token)]))
                #expect(result.answers == [.rejected(reason: "malformed-token", suspectToken: true)])
            }
            #expect(try await apns.requests().isEmpty)
        }
    }

    @Test func `a probe is rejected for its token only, which shows that the route works`()
        async throws
    {
        try await SimulatedAPNs.run { apns, sender in
            let route = ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)
            let result = try await sender.send(.probe(of: route, provider: .apns, now: sender.time.now))
            #expect(result.answers == [.rejected(reason: "BadDeviceToken", suspectToken: true)])
            let request = try #require(try await apns.requests().first)
            #expect(request["body"] == ["aps": ["content-available": 1]])
            #expect(request["headers"]?["apns-push-type"] == "background")
            #expect(sender.trouble() == nil)
        }
    }

    @Test func `A32: the provider token has the claims iss and iat only`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            _ = try await sender.send(.sample())
            let request = try #require(try await apns.requests().last)
            let authorization = try #require(request["headers"]?["authorization"]?.string)
            let parts = authorization.dropFirst("bearer ".count).split(separator: ".").map(String.init)
            let header = try #require(Self.json(parts[0])), claims = try #require(Self.json(parts[1]))
            #expect(header["alg"] == "ES256" && header["kid"] == "ABC123DEFG")
            #expect(claims == ["iss": "DEF123GHIJ", "iat": .int(sender.time.now.seconds)])
            #expect(parts[2].utf8.count == 86)
        }
    }

    @Test func `A33 A34: all senders share one token, and the next is minted between 19 and 51 minutes`() async throws {
        try await SimulatedAPNs.run { apns, sender in
            var tokens: [Set<String?>] = []
            for minutes in [0, 19, 32, 19] {
                sender.time.advance(by: .seconds(minutes * 60))
                let before = try await apns.requests().count
                for environment in ProviderEnvironment.allCases {
                    let targets = (0..<50).map { Push.Target.sample(token: String($0 + 0x1000_0000, radix: 16)) }
                    _ = try await sender.send(.sample(environment: environment, targets: targets))
                }
                let requests = try await apns.requests().dropFirst(before)
                #expect(requests.count == 100)
                tokens.append(Set(requests.map { $0["headers"]?["authorization"]?.string }))
            }
            #expect(tokens.allSatisfy { $0.count == 1 })
            #expect(tokens[0] == tokens[1] && tokens[1] != tokens[2] && tokens[2] == tokens[3])
        }
    }

    private static func json(_ part: String) -> JSONValue? {
        var base64 = part.replacing("-", with: "+").replacing("_", with: "/")
        while !base64.count.isMultiple(of: 4) { base64 += "=" }
        return Data(base64Encoded: base64).flatMap { try? WireCoding.decode(JSONValue.self, from: Array($0)) }
    }
}
