import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

@Suite struct DigestTimeTests {
    @Test(arguments: [
        ("08:00", "Europe/Berlin", "2026-01-10T06:59:59Z", "2026-01-10", "2026-01-10T07:00:00Z"),
        ("08:00", "Europe/Berlin", "2026-01-10T07:00:00Z", "2026-01-11", "2026-01-11T07:00:00Z"),
        // Skipped by a clock change: the time right after.
        ("02:30", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29", "2026-03-29T01:00:00Z"),
        // Occurs twice: the first one only.
        ("02:30", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25", "2026-10-25T00:30:00Z"),
        ("02:30", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26", "2026-10-26T01:30:00Z"),
        // Samoa skipped this day.
        ("12:00", "Pacific/Apia", "2011-12-29T22:00:00Z", "2011-12-31", "2011-12-30T22:00:00Z"),
    ])
    func `the next digest`(at: String, name: String, now: String, on: String, next: String) {
        #expect(
            DigestTime(time: clock(at)).next(after: moment(now), in: zone(name))
                == DigestTime.Occurrence(date: day(on), at: moment(next)))
    }

    @Test(arguments: [
        (DigestDays.weekdays([.sunday]), "2026-01-10T12:00:00Z", "2026-01-11T18:00:00Z"),
        (.weekdays([.sunday]), "2026-01-11T18:00:00Z", "2026-01-18T18:00:00Z"),
        (.weekdays([.monday, .thursday]), "2026-01-12T18:00:00Z", "2026-01-15T18:00:00Z"),
        (.monthDays([1, 15]), "2026-01-15T18:00:00Z", "2026-02-01T18:00:00Z"),
        // April has 30 days.
        (.monthDays([31]), "2026-03-31T18:00:00Z", "2026-05-31T18:00:00Z"),
    ])
    func `the next digest on chosen days`(days: DigestDays, now: String, next: String) {
        #expect(DigestTime(time: clock("18:00"), days: days).next(after: moment(now), in: .utc).at == moment(next))
    }

    @Test func `a digest at a clock change on its day is sent once, at the end of the gap`() {
        let digest = DigestTime(time: clock("02:30"), days: .weekdays([.sunday]))
        let first = digest.next(after: moment("2026-03-28T12:00:00Z"), in: zone("Europe/Berlin"))
        #expect(first == DigestTime.Occurrence(date: day("2026-03-29"), at: moment("2026-03-29T01:00:00Z")))
        let second = digest.next(after: first.at, in: zone("Europe/Berlin"), last: first)
        #expect(second == DigestTime.Occurrence(date: day("2026-04-05"), at: moment("2026-04-05T00:30:00Z")))
    }

    @Test func `a date that the zone skips has no digest, although its weekday is chosen`() {
        // Samoa skipped Friday, 30 December 2011.
        let next = DigestTime(time: clock("12:00"), days: .weekdays([.friday])).next(
            after: moment("2011-12-29T22:00:00Z"), in: zone("Pacific/Apia"))
        #expect(next.date == day("2012-01-06"))
    }

    @Test func `a digest time moved to later today applies from tomorrow after today's digest`() {
        let last = DigestTime.Occurrence(date: day("2026-01-10"), at: moment("2026-01-10T08:00:00Z"))
        let next = DigestTime(time: clock("17:00")).next(after: moment("2026-01-10T09:00:00Z"), in: .utc, last: last)
        #expect(next == DigestTime.Occurrence(date: day("2026-01-11"), at: moment("2026-01-11T17:00:00Z")))
    }

    @Test func `two digests are at least six hours apart, also after a zone change`() {
        let last = DigestTime.Occurrence(date: day("2026-01-10"), at: moment("2026-01-10T22:00:00Z"))
        let next = DigestTime(time: clock("00:30")).next(after: last.at, in: .utc, last: last)
        #expect(next == DigestTime.Occurrence(date: day("2026-01-11"), at: moment("2026-01-11T04:00:00Z")))
        // It is still the 10th in Honolulu and the 11th in Tokyo; the digest of the 10th is already sent.
        let eastern = DigestTime.Occurrence(date: day("2026-01-11"), at: moment("2026-01-10T23:00:00Z"))
        let western = DigestTime(time: clock("08:00")).next(
            after: eastern.at, in: zone("Pacific/Honolulu"), last: eastern)
        #expect(western.date == day("2026-01-12"))
    }

    @Test func `in every zone, one digest on every local date around a change, and never two`() {
        var random = SplitMix(seed: 7)
        for zone in Zones.all {
            for change in Zones.changes(of: zone) {
                let wall = Zones.wall(change, in: zone)
                let minute = (wall.minute + Int.random(in: -70...70, using: &random)).remainder(floored: 1440)
                let digest = DigestTime(time: LocalTime(minuteOfDay: minute)!)
                var last = digest.next(after: change + .seconds(-3 * 86_400), in: zone)
                for _ in 0..<5 {
                    let next = digest.next(after: last.at, in: zone, last: last)
                    #expect(next.date == last.date.adding(days: 1), "\(zone.name) \(digest) \(last.date)")
                    #expect(zone.local(next.at).date == next.date, "\(zone.name) \(digest) \(next.date)")
                    last = next
                }
            }
        }
    }
}
