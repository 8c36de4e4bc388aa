import Foundation
import PushProtocol
import Testing

@testable import FeedbackStore
@testable import Pushctl

@Suite struct QuarantineReportTests {
    private let device = UUID(uuidString: "11111111-1111-5111-8111-111111111111")!
    private let now = Date(timeIntervalSince1970: 1_767_225_600)

    private func guarded(_ app: String, refused: Int64?, answered: Int64?) -> QuarantineStore.TrippedGuard {
        .init(route: "\(app)/apns/production", since: now, until: now, refused: refused, answered: answered)
    }

    @Test func `the report has a line for each guard and registration, the total and the causes`() {
        let one = guarded("family-portal", refused: 30, answered: 100)
        let entry = QuarantineStore.QuarantinedRegistration(
            device: device, app: "family-portal", provider: "apns", environment: "production",
            reason: "BadDeviceToken", cause: "storm", count: 2, first: now, last: now)
        let lines = QuarantineReport.lines(guards: [one], entries: [entry], total: 2)
        #expect(lines.count == 5)
        #expect(
            lines[0].contains("family-portal/apns/production")
                && lines[0].contains("30 of 100 responses were rejections"))
        #expect(lines[1].hasPrefix("device ") && lines[2].contains("  BadDeviceToken  (storm)      2  "))
        #expect(lines[3] == "2 registrations are quarantined; 1 shown")
        #expect(lines[4].hasPrefix("(storm) "))
        let json = QuarantineReport.json(guards: [one], entries: [entry], total: 2)
        #expect(json["total"] == 2 && json["registrations"]?.array?.first?["count"] == 2)
        #expect(json["guards"]?.array?.first?["refused"] == 30)
        let reported = guarded("hide-and-seek", refused: nil, answered: nil)
        let guards = QuarantineReport.lines(guards: [one, reported], entries: [], total: 0)
        #expect(guards.count == 3)
        #expect(
            guards[1].contains("hide-and-seek/apns/production") && guards[1].contains("a sender has paused the route"))
    }

    @Test func `an empty quarantine is stated`() {
        #expect(QuarantineReport.lines(guards: [], entries: [], total: 0) == ["nothing is quarantined"])
    }

    @Test func `a decision needs devices or --all`() throws {
        typealias RegistrationArguments = FeedbackCommand.RegistrationArguments
        #expect(try RegistrationArguments.selected(devices: [], all: true) == .all)
        #expect(try RegistrationArguments.selected(devices: [device.uuidString], all: false) == .devices([device]))
        for (devices, all) in [([], false), ([device.uuidString], true), (["not-a-device"], false)] {
            #expect(throws: CommandError.self) { try RegistrationArguments.selected(devices: devices, all: all) }
        }
    }
}
