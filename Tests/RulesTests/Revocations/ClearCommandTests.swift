import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import Providers
@testable import RuleEngine
@testable import RuleLanguage

/// The clear command without a database: chosen copies, budget and bytes.
@Suite struct ClearCommandTests {
    static let now = moment("2026-01-10T12:00:00Z")
    static let person = PersonKey(app: AppID(rawValue: "test")!, user: user("1"))

    private func copy(_ number: Int, key: String? = nil, isSent: Bool = false) -> ClearCommand.Copy {
        let id = DerivedID.uuid5(DerivedID.namespace, ["copy", "\(number)"])
        return ClearCommand.Copy(
            notification: id, identifier: key ?? id.uuidString.lowercased(), isSent: isSent)
    }

    @Test func `given more copies than one command takes, then the unsent ones come first`() {
        let sent = (0..<30).map { copy($0, isSent: true) }
        let unsent = (100..<120).map { copy($0) }
        let chosen = ClearCommand.chosen(among: sent + unsent)
        #expect(chosen == unsent + sent.prefix(20))
        #expect(ClearCommand.chosen(among: (0..<50).map { copy($0) }).count == ClearCommand.maximumCopies)
        #expect(ClearCommand.chosen(among: []) == [])
    }

    @Test func `given a sent copy with a collapse key, then it is not repeated`() {
        let chosen = ClearCommand.chosen(among: [
            copy(1, key: "chat-9", isSent: true), copy(2), copy(3, key: "chat-8"), copy(4, isSent: true),
        ])
        #expect(chosen == [copy(2), copy(3, key: "chat-8"), copy(4, isSent: true)])
    }

    @Test(arguments: [
        ([], 0), ([-60], 0), ([-60, -30], 0), ([-60, -30, -10], 3540), ([-4000, -30, -10], 0),
        ([-10, -3599, -20, -3598], 2), ([-3600, -2, -1], 0),
    ])
    func `given earlier commands, then the next one waits for the budget`(sent: [Int], seconds: Int) {
        let next = ClearCommand.next(after: sent.map { Self.now + .seconds($0) }, now: Self.now)
        #expect(next == (seconds == 0 ? nil : Self.now + .seconds(seconds)))
    }

    /// The longest keys, with characters that JSON escapes.
    @Test(arguments: [nil, String(repeating: "k", count: 64), String(repeating: "\"", count: 64)])
    func `the largest command fits into the bodies of both providers`(key: String?) throws {
        let chosen = ClearCommand.chosen(among: (0..<100).map { copy($0, key: key) })
        let notification = ClearCommand.notification(
            clearing: chosen, of: Self.person, command: UUID(), lane: .interactive, now: Self.now)
        #expect(chosen.count >= 9)
        let apns = try APNsPayload.render(notification.content, badge: nil)
        #expect(apns["aps"] == ["content-available": 1])
        #expect(apns["data"]?["heliograph_clear"] == .array(chosen.map { .string($0.identifier) }))
        #expect(JSONText.bytes(of: apns).count <= 4096)
        let headers = try APNsHeaders(for: notification.content, bundle: "com.example", expiresAt: nil)
        #expect(headers.pushType == .background && headers.priority == .powerAware)
        #expect(headers.collapseID == "heliograph-clear")
        let fcm = try FCMMessage(content: notification.content, badge: nil, expiresAt: nil, now: Self.now).rendered
        #expect(fcm["notification"] == nil && fcm["android"]?["priority"] == "NORMAL")
        let data = JSONText.bytes(of: fcm["data"] ?? [:])
        #expect(data.count <= 4096)
        let text = try #require(fcm["data"]?["heliograph_clear"]?.string)
        #expect(try JSONDecoder().decode([String].self, from: Data(text.utf8)) == chosen.map(\.identifier))
    }

    @Test func `a command names its recipient and expires`() {
        let id = ClearCommand.id(of: Self.person, version: 7)
        let notification = ClearCommand.notification(
            clearing: [copy(1)], of: Self.person, command: id, lane: .bulk, now: Self.now)
        #expect(notification.recipients == [Notification.Recipient(user: user("1"), notification: id)])
        #expect(notification.expiresAt == Self.now + ClearCommand.lifetime)
        #expect(notification.lane == .bulk && notification.rule == "!clear" && notification.trace.id == id)
        #expect(id != ClearCommand.id(of: Self.person, version: 8))
    }
}
