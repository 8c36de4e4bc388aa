import FoundationEssentials
import Messaging
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import FCMSender

/// The response vectors G01 to G16 from the simulator's response to the outcome.
@Suite(.timeLimit(.minutes(3))) struct ResponseWireTests {
    /// A scripted response to the only target of a push, and the expected consequence.
    struct Vector: Sendable {
        let name: String
        /// The simulator's script, for provider `fcm`.
        let script: JSONValue
        var attempt = 1
        let expected: Expected
        /// The expected numbers of FCM requests and of access token requests.
        var sends = 1
        var grants = 1

        enum Expected: Sendable {
            case settled(Outcome.Answer)
            /// Retried after one of the bus's delays, at least the provider's minimum.
            case retried(after: Duration, atLeast: Duration)
            /// Postponed without counting an attempt; the route is halted with this reason, without outcomes.
            case halted(String)
            /// Postponed without counting an attempt, while the route stays open.
            case held(after: Duration)
        }
    }

    private static func quota(_ retryAfter: JSONValue? = nil) -> JSONValue {
        var script: [String: JSONValue] = ["error_code": "QUOTA_EXCEEDED"]
        script["retry_after"] = retryAfter
        return .object(script)
    }

    static let vectors: [Vector] = [
        Vector(
            name: "G01", script: ["status": 200, "body": #"{"name":"projects/demo-project/messages/0:15%31bd"}"#],
            expected: .settled(.accepted(id: "0:15%31bd"))),
        Vector(
            name: "G02", script: ["error_code": "UNREGISTERED"],
            expected: .settled(.unregistered(since: nil, reason: "UNREGISTERED"))),
        Vector(
            name: "G03", script: ["error_code": "INVALID_ARGUMENT", "field": "message.token"],
            expected: .settled(.unregistered(since: nil, reason: "INVALID_ARGUMENT"))),
        Vector(
            name: "G04", script: ["status": 400, "field": "message.data[0].value"],
            expected: .settled(.rejected(reason: "INVALID_ARGUMENT", suspectToken: false))),
        Vector(
            name: "G05",
            script: ["error_code": "INVALID_ARGUMENT", "apns_error": ["status": 410, "reason": "Unregistered"]],
            expected: .settled(.unregistered(since: nil, reason: "Unregistered"))),
        Vector(
            name: "G06", script: ["error_code": "SENDER_ID_MISMATCH"],
            expected: .settled(.rejected(reason: "SENDER_ID_MISMATCH", suspectToken: true))),
        Vector(name: "G07", script: ["status": 403], expected: .halted("PERMISSION_DENIED")),
        Vector(
            name: "G08", script: ["status": 401, "count": 1], expected: .settled(.accepted(id: nil)), sends: 2,
            grants: 2),
        Vector(
            name: "G08 again", script: ["status": 401], expected: .halted("UNAUTHENTICATED"), sends: 2, grants: 2),
        Vector(
            name: "G09",
            script: [
                "error_code": "THIRD_PARTY_AUTH_ERROR",
                "apns_error": ["status": 403, "reason": "InvalidProviderToken"],
            ], expected: .held(after: .seconds(30))),
        Vector(
            name: "G10", script: quota(120), expected: .retried(after: .seconds(120), atLeast: .seconds(120))),
        Vector(name: "G11", script: quota(), expected: .retried(after: .seconds(120), atLeast: .seconds(60))),
        Vector(
            name: "G11 the third time", script: quota(), attempt: 3,
            expected: .retried(after: .seconds(900), atLeast: .seconds(240))),
        Vector(
            name: "G13", script: ["error_code": "INTERNAL"],
            expected: .retried(after: .seconds(30), atLeast: .seconds(10))),
        Vector(
            name: "G14", script: ["status": 502, "body": "<html>", "content_type": "text/html"],
            expected: .retried(after: .seconds(30), atLeast: .seconds(10))),
        Vector(name: "G15", script: ["status": 404], expected: .halted("NOT_FOUND")),
        Vector(
            name: "G15 as HTML", script: ["status": 404, "body": "<html>", "content_type": "text/html"],
            expected: .halted("HTTP 404")),
    ]

    @Test(arguments: vectors.map(\.name)) func `a response has this consequence`(name: String) async throws {
        let vector = try #require(Self.vectors.first { $0.name == name })
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            try await google.script(vector.script.merging(["provider": "fcm"]))
            let result = try await sender.send(.sample(provider: .fcm, targets: [.ft1]), attempt: vector.attempt)
            Self.check(result, vector, sender.trouble)
            #expect(try await google.sends().count == vector.sends)
            #expect(try await google.grants().count == vector.grants)
            await sender.stop()
        }
    }

    private static func check(
        _ result: SenderUnderTest.Result, _ vector: Vector, _ trouble: CircuitBreaker.OpenCause?
    ) {
        switch vector.expected {
        case .settled(.accepted(id: nil)):
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(result.disposition == .done && trouble == nil)
        case .settled(let answer):
            #expect(result.answers == [answer])
            #expect(result.disposition == .done && trouble == nil)
        case .retried(let wait, let floor):
            #expect(result.answers == [] && trouble == nil)
            guard case .retry(wait, _) = result.disposition else {
                Issue.record("\(result.disposition)")
                return
            }
            #expect(wait >= floor)
        case .held(let wait):
            #expect(result.answers == [] && trouble == nil)
            guard case .postpone(wait, _) = result.disposition else {
                Issue.record("\(result.disposition)")
                return
            }
        case .halted(let reason):
            #expect(result.answers == [])
            #expect(trouble == .misconfigured(reason: reason))
            guard case .postpone = result.disposition else {
                Issue.record("\(result.disposition)")
                return
            }
        }
    }

    @Test func `G12: an HTTP date counts from the time it was received`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let date = HTTPDate.text(of: sender.time.clock.now() + .seconds(45))
            try await google.script(["provider": "fcm", "error_code": "UNAVAILABLE", "retry_after": .string(date)])
            let result = try await sender.send(.sample(provider: .fcm, targets: [.ft1]))
            // 45 s exceeds the delay of 30 s; the next one is two minutes.
            #expect(result.wait == .seconds(120))
            await sender.stop()
        }
    }

    @Test func `G09: Apple's rejection of Firebase's key does not affect Android or the access token`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let targets = (0..<50).map { Push.Target.sample(token: $0 % 2 == 0 ? "sim:APNS_AUTH:1:\($0)" : "a\($0)") }
            let result = try await sender.send(.sample(provider: .fcm, targets: targets))
            #expect(result.wait == .seconds(30))
            #expect(result.answers.map(\.disposition) == Array(repeating: .accepted, count: 25))
            #expect(result.remainder == targets.indices.filter { $0 % 2 == 0 }.map { targets[$0] })
            #expect(sender.trouble == nil)
            #expect(sender.thirdPartyOpenCause == .misconfigured(reason: "InvalidProviderToken"))
            #expect(try await google.sends().count == 50)
            #expect(try await google.grants().count == 1)
            await sender.stop()
        }
    }

    @Test func `G09: an iPhone's pushes wait until Apple accepts Firebase's key again, and are then sent once`()
        async throws
    {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            // The scenario rejects the first two requests.
            let phone = Push.Target.sample(token: "sim:APNS_AUTH:2:phone")
            func send() async throws -> SenderUnderTest.Result {
                try await sender.send(.sample(provider: .fcm, targets: [phone]))
            }
            #expect(try await send().wait == .seconds(30))
            // The breaker is open: nothing is sent, and no attempt counts.
            let held = try await send()
            guard case .postpone(.seconds(30), _) = held.disposition else {
                Issue.record("\(held.disposition)")
                return
            }
            #expect(try await google.sends().count == 1)
            // Android continues.
            let android = try await sender.send(.sample(provider: .fcm, targets: [.sample(token: "android")]))
            #expect(android.answers.map(\.disposition) == [.accepted])
            // The probe after the pause is rejected, so the next pause is longer.
            sender.time.advance(by: .seconds(31))
            #expect(try await send().disposition != .done)
            sender.time.advance(by: .seconds(31))
            #expect(try await send().disposition != .done)
            #expect(try await google.sends().count == 3)
            sender.time.advance(by: .seconds(31))
            #expect(try await send().answers.map(\.disposition) == [.accepted])
            #expect(sender.thirdPartyOpenCause == nil)
            #expect(try await send().answers.map(\.disposition) == [.accepted])
            #expect(try await google.sends().count == 5)
            await sender.stop()
        }
    }

    @Test func `G16: without a response in time, the push is retried after at least ten seconds`()
        async throws
    {
        #expect(FCMGateways.deadline == .seconds(10))
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google, deadline: .seconds(2))
            try await google.script(["provider": "fcm", "silence": true])
            let result = try await sender.send(.sample(provider: .fcm, targets: [.ft1]))
            guard case .retry(.seconds(30), _) = result.disposition else {
                Issue.record("\(result.disposition)")
                return
            }
            #expect(try await google.sends().count == 1)
            #expect(sender.trouble == nil)
            await sender.stop()
        }
    }

    @Test func `a device over its rate waits, others do not`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let targets = ["a", "sim:DEVQUOTA:1:b", "c"].map { Push.Target.sample(token: $0) }
            let result = try await sender.send(.sample(provider: .fcm, targets: targets))
            #expect(result.answers.map(\.disposition) == [.accepted, .accepted])
            #expect(result.remainder?.map(\.token) == [DeviceToken(secret: "sim:DEVQUOTA:1:b")])
            #expect(result.wait == .seconds(120))
            #expect(sender.trouble == nil)
            await sender.stop()
        }
    }

    @Test(arguments: [Push.Address.topic, .condition])
    func `responses about a topic or condition are no evidence against a token`(address: Push.Address) async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let text = address == .topic ? "news" : "'news' in topics"
            for code in ["UNREGISTERED", "SENDER_ID_MISMATCH", "INVALID_ARGUMENT"] {
                try await google.script(["provider": "fcm", "error_code": .string(code)])
                let result = try await sender.send(
                    .sample(provider: .fcm, targets: [.sample(token: text, address: address)]))
                #expect(result.answers == [.rejected(reason: code, suspectToken: false)])
            }
            await sender.stop()
        }
    }
}
