import FoundationEssentials
import PushProtocol
import Testing

/// A body must match the routing key that its publisher was permitted to use.
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

    @Test func `a notification must have the lane and app of its routing key`() {
        let named = notification(.interactive)
        #expect(!isRefused(named.check, "interactive.demo"))
        for key in ["bulk.demo", "interactive.other", "interactive", "interactive.demo.x", "demo", ""] {
            #expect(isRefused(named.check, key), "\(key)")
        }
    }

    @Test func `a notification to an audience may use the bulk lane of its app`() {
        let announced = notification(.interactive, to: Audience(campaign: UUID(), members: .everyone))
        #expect(!isRefused(announced.check, "bulk.demo") && !isRefused(announced.check, "interactive.demo"))
        #expect(isRefused(announced.check, "bulk.other"))
    }

    @Test func `a device command must have the verb of its routing key, and the app if the key names one`() {
        let command = DeviceCommand(
            trace: trace, app: app, command: .correct(device: UUID(), environment: .development))
        #expect(command.routingKey == "command.correct.demo")
        #expect(!isRefused(command.check, "command.correct") && !isRefused(command.check, "command.correct.demo"))
        for key in ["command.correct.other", "command.deactivate", "command.deactivate.demo", "event.erased"] {
            #expect(isRefused(command.check, key), "\(key)")
        }
    }

    @Test func `a device event must have the change of its routing key`() {
        let event = DeviceEvent(
            trace: trace, app: app, change: .userErased, user: user, device: nil, at: Timestamp(milliseconds: 1))
        #expect(!isRefused(event.check, "event.user-erased"))
        #expect(isRefused(event.check, "event.erased") && isRefused(event.check, "command.deactivate"))
    }

    @Test func `outcomes must have the origin of their routing key`() {
        let outcomes = Outcomes(
            trace: trace, app: app, origin: .apns, environment: .production, lane: .bulk, outcomes: [])
        #expect(!isRefused(outcomes.check, "apns.accepted.elsewhere"))
        for key in ["fcm.accepted", "registry.skipped", "", "apns-x.accepted"] {
            #expect(isRefused(outcomes.check, key), "\(key)")
        }
    }

    @Test func `a stream accepts messages of its routing keys only, and markers by their exchange`() {
        let stream = StreamName.senderRevocations
        #expect(stream.accepts(exchange: "devices", routingKey: "event.erased"))
        #expect(!stream.accepts(exchange: "devices", routingKey: "command.deactivate"))
        #expect(!stream.accepts(exchange: "outcomes", routingKey: "event.erased"))
    }
}
