import FoundationEssentials
import PushProtocol
import Testing

/// A body is held to the routing key that the broker let its publisher use.
@Suite struct RoutingKeyCheckTests {
    private let trace = Trace(id: UUID(), correlation: "c", causation: "c")
    private let app = AppID(rawValue: "demo")!
    private let user = UserID(rawValue: "u")!

    private func notification(_ lane: Lane, to audience: Audience? = nil) -> PushProtocol.Notification {
        let recipients = audience == nil ? [Notification.Recipient(user: user, notification: UUID())] : []
        return Notification(
            trace: trace, app: app, rule: "r", lane: lane, content: Content(title: "t"), recipients: recipients,
            audience: audience)
    }

    private func isRefused(_ check: (String) throws(WireError) -> Void, _ routingKey: String) -> Bool {
        do throws(WireError) {
            try check(routingKey)
            return false
        } catch {
            return error.code == "wrong-routing-key"
        }
    }

    @Test func `a notification has the lane and app of its routing key`() {
        let named = notification(.interactive)
        #expect(!isRefused(named.check, "interactive.demo"))
        for key in ["bulk.demo", "interactive.other", "interactive", "interactive.demo.x", "demo", ""] {
            #expect(isRefused(named.check, key), "\(key)")
        }
    }

    @Test func `a notification to an audience may come through the bulk lane, for its own app`() {
        let announced = notification(.interactive, to: Audience(campaign: UUID(), members: .everyone))
        #expect(!isRefused(announced.check, "bulk.demo") && !isRefused(announced.check, "interactive.demo"))
        #expect(isRefused(announced.check, "bulk.other"))
    }

    @Test func `a device command has the verb of its routing key, and the app where the key names one`() {
        let command = DeviceCommand(
            trace: trace, app: app, command: .correct(device: UUID(), environment: .development))
        #expect(command.routingKey == "command.correct.demo")
        #expect(!isRefused(command.check, "command.correct") && !isRefused(command.check, "command.correct.demo"))
        for key in ["command.correct.other", "command.deactivate", "command.deactivate.demo", "event.erased"] {
            #expect(isRefused(command.check, key), "\(key)")
        }
    }

    @Test func `a device event has the word of its routing key`() {
        let event = DeviceEvent(
            trace: trace, app: app, past: .userErased, user: user, device: nil, at: Timestamp(milliseconds: 1))
        #expect(!isRefused(event.check, "event.user-erased"))
        #expect(isRefused(event.check, "event.erased") && isRefused(event.check, "command.deactivate"))
    }

    @Test func `outcomes have the origin of their routing key`() {
        let outcomes = Outcomes(
            trace: trace, app: app, origin: .apns, environment: .production, lane: .bulk, outcomes: [])
        #expect(!isRefused(outcomes.check, "apns.accepted.elsewhere"))
        for key in ["fcm.accepted", "registry.skipped", "", "apns-x.accepted"] {
            #expect(isRefused(outcomes.check, key), "\(key)")
        }
    }

    @Test func `a stream takes the messages of its routing keys, and its marks are told apart by their exchange`() {
        let stream = StreamName.senderRevocations
        #expect(stream.takes(exchange: "devices", routingKey: "event.erased"))
        #expect(!stream.takes(exchange: "devices", routingKey: "command.deactivate"))
        #expect(!stream.takes(exchange: "outcomes", routingKey: "event.erased"))
    }
}
