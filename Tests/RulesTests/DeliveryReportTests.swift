import Contracts
import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

@Suite struct DeliveryReportTests {
    @Test func `a delivery report is an event with the documented fields`() throws {
        let report = DeliveryReport(
            notification: UUID(uuidString: "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a")!, app: AppID(rawValue: "test")!,
            user: user("u"), rule: "only", event: "e-1", dueAt: GatheringTests.start, isPushSent: true, devices: 2,
            isFailed: false)
        let event = try CloudEvents.decode(
            routingKey: "test.x", contentType: CloudEvents.structuredContentType, headers: [:],
            body: try report.event(at: GatheringTests.start).body())
        #expect(event.type == "heliograph.notification.reported")
        let contract = try #require(MessageContract.all.first { $0.name == "delivery-report" })
        let body = try WireCoding.decode(JSONValue.self, from: report.event(at: GatheringTests.start).body())
        #expect(SchemaValidator(contract.schema, isClosed: true).problems(of: body) == [])
        #expect(
            event.data == [
                "notification_id": "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a", "event_id": "e-1", "user_id": "u",
                "rule": "only", "push_sent": true, "devices_notified": 2, "failed": false,
            ])
        var later = report
        later.devices = 3
        #expect(later.id != report.id)
    }
}
