import Foundation
import PushProtocol
import Testing

@testable import DecisionLog

@Suite struct AttentionReportTests {
    private static let noon = Date(timeIntervalSince1970: 1_767_268_800)

    private static func report(promise: Int?) -> AttentionReport {
        AttentionReport(
            app: "shop", from: noon, until: noon.addingTimeInterval(86_400), promise: promise,
            days: .init(
                notifications: 200, users: 90, median: 1, ninety: 3, ninetyNine: 7, maximum: 12, usersOver: 2,
                daysOver: 3),
            rules: [
                .init(name: "order", notifications: 130, users: 80, over: 11),
                .init(name: "tip", notifications: 70, users: 40, over: 9),
            ],
            users: [.init(id: "u7", notifications: 30, most: 12, daysOver: 2)])
    }

    @Test func `a report with a promise names the users and rules over it`() {
        #expect(
            Self.report(promise: 6).lines == [
                "200 notifications to 90 users between 2026-01-01T12:00:00.000Z and 2026-01-02T12:00:00.000Z",
                "A user with any gets 1 on a day (median), 3 (90 %), 7 (99 %), at most 12.",
                "The app promises at most 6 a day: 2 users got more, on 3 days.",
                "",
                "rule   notifications  share  users  over the promise",
                "order            130   65 %     80                11",
                "tip               70   35 %     40                 9",
                "",
                "user  notifications  most in a day  days over the promise",
                "u7               30             12                      2",
            ])
        let json = Self.report(promise: 6).json
        #expect(json["over"] == ["users": 2, "days": 3] && json["promise"] == 6)
        #expect(json["a_day"] == ["median": 1, "p90": 3, "p99": 7, "maximum": 12])
        #expect(json["rules"]?.array?.first == ["rule": "order", "notifications": 130, "users": 80, "over": 11])
    }

    @Test func `a report without a promise has no such columns`() {
        let report = Self.report(promise: nil)
        #expect(!report.lines.contains { $0.contains("promise") })
        #expect(report.json["over"] == nil && report.json["promise"] == .null)
        #expect(
            report.json["most_notified"]?.array == [["user": "u7", "notifications": 30, "most_in_a_day": 12]])
    }

    @Test func `a window without notifications says so`() {
        var report = Self.report(promise: 6)
        report.days = .init()
        #expect(
            report.lines == ["no notifications between 2026-01-01T12:00:00.000Z and 2026-01-02T12:00:00.000Z"])
    }
}
