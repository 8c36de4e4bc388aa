import Messaging
import Providers
import PushProtocol
import Testing
import TestSupport

@Suite struct SanitizedReasonTests {
    @Test(arguments: [
        ("BadTopic", "BadTopic"), ("a\nb\u{0} \u{e9}", "ab"), ("0:15%31bd", "0:15%31bd"), ("\u{7f}\u{85}", ""),
        (String(repeating: "x", count: 1000), String(repeating: "x", count: 64)),
    ]) func `only visible ASCII is kept, up to the maximum length`(said: String, word: String) {
        #expect(SanitizedReason.printable(said) == word)
    }

    /// With every character escaped, in the longest answer.
    @Test func `the outcomes of a full push fit into one message, whatever the reasons`() throws {
        let word = SanitizedReason.printable(String(repeating: "\"\\", count: 1000))
        let outcomes = (0..<Push.maximumTargets).map { _ in
            let target = Push.Target.sample()
            return Outcome(
                notification: target.notification, device: target.device,
                answer: .unregistered(since: .sample, reason: word), at: .sample, registeredAt: target.registeredAt)
        }
        let push = Push.sample()
        let message = Outcomes(
            trace: push.trace, app: push.app, origin: .apns, environment: .production, lane: .bulk, outcomes: outcomes)
        _ = try Outbound(message, to: .outcomes, routingKey: "apns.unregistered")
    }
}
