import Messaging
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import FCMSender

/// The vectors O01 to O03 with the simulator's token endpoint, which verifies the assertion's signature and claims.
@Suite(.timeLimit(.minutes(2))) struct AccessTokenWireTests {
    private func authorizations(_ google: SimulatedGoogle) async throws -> [String] {
        try await google.sends().compactMap { $0[path: "headers.authorization"]?.string }
    }

    @Test func `O01 O02: five hundred sends on a cold start request one access token`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let targets = (0..<500).map { Push.Target.sample(token: "t\($0)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in 0..<10 {
                    group.addTask {
                        let some = Array(targets[(part * 50)..<(part * 50 + 50)])
                        let result = try await sender.send(.sample(provider: .fcm, targets: some))
                        #expect(result.answers.allSatisfy { $0.disposition == .accepted })
                    }
                }
                try await group.waitForAll()
            }
            let grants = try await google.grants()
            #expect(grants.count == 1)
            #expect(grants.first?[path: "headers.content-type"] == "application/x-www-form-urlencoded")
            #expect(Set(try await authorizations(google)).count == 1)
            #expect(try await google.sends().count == 500)
            await sender.stop()
        }
    }

    @Test func `O03: a token is used until five minutes before its end, then replaced by one new token`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            func send() async throws {
                let result = try await sender.send(.sample(provider: .fcm, targets: [.sample(token: "t")]))
                #expect(result.answers.map(\.disposition) == [.accepted])
            }
            try await send()
            sender.time.advance(by: .seconds(3200))
            try await send()
            #expect(try await google.grants().count == 1)
            #expect(Set(try await authorizations(google)).count == 1)
            sender.time.advance(by: .seconds(200))
            try await send()
            try await eventually("the new token serves", within: .seconds(30)) {
                try await send()
                return Set(try await authorizations(google)).count == 2
            }
            #expect(try await google.grants().count == 2)
            await sender.stop()
        }
    }

    @Test func `G08: a revoked token is replaced once for all requests rejected with it`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            _ = try await sender.send(.sample(provider: .fcm, targets: [.ft1]))
            try await google.revokeAccessTokens()
            let targets = (0..<200).map { Push.Target.sample(token: "t\($0)") }
            let result = try await sender.send(.sample(provider: .fcm, targets: targets))
            #expect(result.answers.allSatisfy { $0.disposition == .accepted } && result.answers.count == 200)
            #expect(try await google.grants().count == 2)
            await sender.stop()
        }
    }

    /// One response of the token endpoint, and its effect on the route.
    private static let refusals: [(answer: JSONValue, trouble: CircuitBreaker.OpenCause)] = [
        (["status": 503], .unavailable(reason: "the token endpoint answers internal_failure")),
        (
            ["status": 400, "reason": "invalid_grant"],
            .misconfigured(reason: "the token endpoint refuses the service account: invalid_grant")
        ),
    ]

    @Test(arguments: refusals.indices)
    func `an unavailable token endpoint postpones pushes, a refusal halts the route, and no attempt counts`(
        index: Int
    ) async throws {
        let (answer, trouble) = Self.refusals[index]
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            try await google.script(answer.merging(["provider": "oauth", "count": 1]))
            let push = Push.sample(provider: .fcm, targets: [.ft1])
            let held = try await sender.send(push)
            guard case .postpone = held.disposition else {
                Issue.record("\(held.disposition)")
                return
            }
            #expect(sender.trouble == trouble)
            #expect(try await google.sends().isEmpty)
            sender.time.advance(by: .seconds(60))
            #expect(try await sender.send(push).answers.map(\.disposition) == [.accepted])
            #expect(sender.trouble == nil)
            await sender.stop()
        }
    }

    @Test func `given a corrected account file, then it is loaded and its route is probed at once`() async throws {
        try await SimulatedGoogle.run { google in
            try google.folder.write(Array("{}".utf8))
            let sender = try await SenderUnderTest(google)
            let push = Push.sample(provider: .fcm, targets: [.ft1])
            let held = try await sender.send(push)
            #expect(held.answers.isEmpty && held.wait != nil)
            #expect(sender.trouble?.reason.contains("account.json") == true)
            try google.folder.writeAccount()
            await sender.watch.reload()
            #expect(try await sender.send(push).answers.map(\.disposition) == [.accepted])
            #expect(sender.trouble == nil)
            await sender.stop()
        }
    }

    @Test func `another project's account in the same file is rejected, and the former account stays in use`()
        async throws
    {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            try google.folder.writeAccount(project: "other-project")
            await sender.watch.reload()
            #expect(sender.watch.problem?.contains("other-project") == true)
            let result = try await sender.send(.sample(provider: .fcm, targets: [.ft1]))
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(sender.trouble == nil)
            await sender.stop()
        }
    }
}
