import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import Rules

@Suite struct QuietHoursTests {
    static let everyDay = Set(Weekday.allCases)

    func quiet(_ start: String, _ end: String, _ days: Set<Weekday> = everyDay) -> QuietHours {
        QuietHours(days: days, start: clock(start), end: clock(end))
    }

    @Test(arguments: [
        // Across midnight; the start is included, the end is not.
        ("22:00", "07:00", "Europe/Berlin", "2026-01-10T20:59:59Z", nil),
        ("22:00", "07:00", "Europe/Berlin", "2026-01-10T21:00:00Z", "2026-01-11T06:00:00Z"),
        ("22:00", "07:00", "Europe/Berlin", "2026-01-11T05:59:59Z", "2026-01-11T06:00:00Z"),
        ("22:00", "07:00", "Europe/Berlin", "2026-01-11T06:00:00Z", nil),
        // Within a day, and outside.
        ("12:00", "13:30", "Asia/Kolkata", "2026-01-10T06:30:00Z", "2026-01-10T08:00:00Z"),
        ("12:00", "12:00", "Asia/Kolkata", "2026-01-10T06:30:00Z", nil),
        // A window that ends at midnight, and one that starts at midnight.
        ("20:00", "00:00", "UTC", "2026-01-10T23:59:00Z", "2026-01-11T00:00:00Z"),
        ("00:00", "06:00", "UTC", "2026-01-10T00:00:00Z", "2026-01-10T06:00:00Z"),
        // An end skipped by a clock change: the time right after.
        ("22:00", "02:30", "Europe/Berlin", "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z"),
        // An end that occurs twice: the last one.
        ("22:00", "02:30", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z"),
        // A start that occurs twice: the first one, and the repeated hour before it is quiet too.
        ("02:30", "06:00", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T05:00:00Z"),
        // A start skipped by a clock change.
        ("02:30", "06:00", "Europe/Berlin", "2026-03-29T00:59:59Z", nil),
        ("02:30", "06:00", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T04:00:00Z"),
        // Lord Howe changes by half an hour.
        ("01:45", "02:15", "Australia/Lord_Howe", "2026-04-04T15:10:00Z", "2026-04-04T15:45:00Z"),
        // Samoa skipped 30 December 2011: the window before it ends there, and the next starts on the 31st.
        ("22:00", "07:00", "Pacific/Apia", "2011-12-30T09:59:00Z", "2011-12-30T17:00:00Z"),
    ])
    func `a window is quiet until its end`(start: String, end: String, name: String, now: String, release: String?) {
        #expect(quiet(start, end).release(from: moment(now), in: zone(name)) == release.map(moment))
    }

    @Test func `a window belongs to the day on which it starts`() {
        let weekend = quiet("22:00", "07:00", [.friday, .saturday])
        let berlin = zone("Europe/Berlin")
        // Friday, 9 January 2026.
        #expect(weekend.release(from: moment("2026-01-08T23:00:00Z"), in: berlin) == nil)
        #expect(
            weekend.release(from: moment("2026-01-10T05:00:00Z"), in: berlin) == moment("2026-01-10T06:00:00Z"))
        #expect(
            weekend.release(from: moment("2026-01-11T05:00:00Z"), in: berlin) == moment("2026-01-11T06:00:00Z"))
        #expect(weekend.release(from: moment("2026-01-11T22:00:00Z"), in: berlin) == nil)
        #expect(quiet("22:00", "07:00", []).release(from: moment("2026-01-10T22:00:00Z"), in: berlin) == nil)
    }

    @Test func `a user who changes zone in the night has quiet hours in the new zone`() {
        let night = quiet("22:00", "07:00")
        let now = moment("2026-01-11T04:00:00Z")
        #expect(night.release(from: now, in: zone("Europe/Berlin")) == moment("2026-01-11T06:00:00Z"))
        // It is 01:00 in New York at that time.
        #expect(
            night.release(from: moment("2026-01-11T06:00:00Z"), in: zone("America/New_York"))
                == moment("2026-01-11T12:00:00Z"))
        #expect(night.release(from: moment("2026-01-11T06:00:00Z"), in: zone("Asia/Tokyo")) == nil)
    }

    /// Whether a wall-clock time is within quiet hours, ignoring clock changes.
    func isQuiet(_ hours: QuietHours, on wall: Zones.Wall) -> Bool {
        let (start, end) = (hours.start.minuteOfDay, hours.end.minuteOfDay)
        let today = hours.days.contains(wall.date.weekday)
        let yesterday = hours.days.contains(wall.date.adding(days: -1).weekday)
        if start == end { return false }
        if start < end { return today && (start..<end).contains(wall.minute) }
        return today && wall.minute >= start || yesterday && wall.minute < end
    }

    @Test
    func `in every zone, quiet wall-clock minutes are quiet, with little extra silence`() {
        var random = SplitMix(seed: 20_260_329)
        for zone in Zones.all {
            for change in Zones.changes(of: zone) {
                let wall = Zones.wall(change, in: zone).minute
                // One edge near the change, the other at random; sometimes on some days only.
                let near = (wall + Int.random(in: -90...90, using: &random)).remainder(floored: 1440)
                let far = Int.random(in: 0..<1440, using: &random)
                let days =
                    Bool.random(using: &random)
                    ? Self.everyDay : Self.everyDay.filter { _ in Bool.random(using: &random) }
                let edges = Bool.random(using: &random) ? (near, far) : (far, near)
                let hours = QuietHours(
                    days: days, start: LocalTime(minuteOfDay: edges.0)!, end: LocalTime(minuteOfDay: edges.1)!)
                for minute in stride(from: -240, through: 240, by: 11) {
                    let now = change + .seconds(minute * 60)
                    let release = hours.release(from: now, in: zone)
                    let shown = isQuiet(hours, on: Zones.wall(now, in: zone))
                    if shown { #expect(release != nil, "noise: \(zone.name) \(hours) \(now.date)") }
                    guard let release else { continue }
                    // Extra silence comes only from a repeated hour, or from a window whose days end there.
                    if !shown { #expect(abs(minute) <= 180, "silence: \(zone.name) \(hours) \(now.date)") }
                    #expect(release > now)
                    #expect(hours.release(from: release, in: zone) == nil, "\(zone.name) \(hours) \(release.date)")
                    #expect(!isQuiet(hours, on: Zones.wall(release, in: zone)), "\(zone.name) \(hours) \(release.date)")
                }
            }
        }
    }
}
