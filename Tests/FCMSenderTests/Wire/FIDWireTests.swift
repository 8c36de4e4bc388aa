import FoundationEssentials
import Messaging
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import FCMSender

/// Two faults of Firebase's Apple SDK, from the simulator's response to the outcome.
@Suite(.timeLimit(.minutes(2))) struct FIDWireTests {
    private func push(_ fid: String, fallback: String?) -> Push {
        .sample(provider: .fcm, targets: [.sample(token: fid, address: .fid, fallback: fallback, owner: 1)])
    }

    private func withSender(
        pin: JSONValue, _ body: @Sendable (SimulatedGoogle, SenderUnderTest) async throws -> Void
    ) async throws {
        try await SimulatedGoogle.run { google in
            try await google.pin(pin)
            let sender = try await SenderUnderTest(google)
            try await body(google, sender)
            await sender.stop()
        }
    }

    @Test func `#16429: a registration token stored as a FID is delivered as a token`() async throws {
        let pin: JSONValue = [
            "provider": "fcm", "token": "abc:APA91bOld", "project": "demo-project", "token_only": true,
        ]
        try await withSender(pin: pin) { google, sender in
            let result = try await sender.send(push("abc:APA91bOld", fallback: "abc:APA91bOld"))
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(result.outcomes.map(\.refusedFID) == ["UNREGISTERED"])
            #expect(result.remainder == nil)
            let messages = try await google.sends().map { $0["body"]?["message"] }
            #expect(messages.count == 2)
            #expect(messages.first??["fid"] == "abc:APA91bOld" && messages.first??["token"] == nil)
            #expect(messages.last??["token"] == "abc:APA91bOld" && messages.last??["fid"] == nil)
            #expect(messages.first??["notification"] == messages.last??["notification"])
            #expect(sender.trouble == nil)
        }
    }

    @Test func `#16638: a FID that FCM does not know yet is delivered through the fallback token`() async throws {
        let pin: JSONValue = [
            "provider": "fcm", "token": "cNewInstallationID_01", "project": "demo-project",
            "fid_unregistered_ms": 600_000,
        ]
        try await withSender(pin: pin) { google, sender in
            let result = try await sender.send(push("cNewInstallationID_01", fallback: "abc:APA91bBeside"))
            #expect(result.answers.map(\.disposition) == [.accepted])
            #expect(result.outcomes.map(\.refusedFID) == ["UNREGISTERED"])
            let alone = try await sender.send(push("cNewInstallationID_01", fallback: nil))
            #expect(alone.answers == [.unregistered(since: nil, reason: "UNREGISTERED")])
            #expect(alone.outcomes.map(\.refusedFID) == ["UNREGISTERED"])
        }
    }
}
