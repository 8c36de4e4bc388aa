import Foundation
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// Every zone of the tz database, and its offset changes.
enum Zones {
    static let all = TimeZone.knownTimeZoneIdentifiers.compactMap { Zone(name: $0) }
    static let first = moment("2024-01-01T00:00:00Z")
    static let end = moment("2031-01-01T00:00:00Z")

    /// The first second of each new offset from 2024 to 2030, found by looking twice a day.
    static func changes(of zone: Zone) -> [Timestamp] {
        var changes: [Timestamp] = []
        var moment = first
        while moment < end {
            let next = moment + .seconds(43_200)
            if zone.offset(at: moment) != zone.offset(at: next) {
                var (low, high) = (Int(moment.seconds), Int(next.seconds))
                while high - low > 1 {
                    let middle = (low + high) / 2
                    if zone.offset(at: Timestamp(second: middle)) == zone.offset(at: moment) {
                        low = middle
                    } else {
                        high = middle
                    }
                }
                changes.append(Timestamp(second: high))
            }
            moment = next
        }
        return changes
    }

    struct Wall: Hashable {
        var date: LocalDate
        var minute: Int
    }

    /// The wall-clock time by Foundation's calendar, an independent implementation.
    static func wall(_ moment: Timestamp, in zone: Zone) -> Wall {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: zone.name)!
        let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute], from: moment.date)
        return Wall(
            date: LocalDate(year: parts.year!, month: parts.month!, day: parts.day!)!,
            minute: parts.hour! * 60 + parts.minute!)
    }
}

func moment(_ text: String) -> Timestamp { Timestamp(try! Date(text, strategy: .iso8601)) }
func zone(_ name: String) -> Zone { Zone(name: name)! }
func day(_ text: String) -> LocalDate { LocalDate(text)! }
func clock(_ text: String) -> LocalTime { LocalTime(text)! }

@Suite struct ZoneTests {
    @Test func `names of the tz database and its links are accepted, and nothing else`() {
        for name in ["Europe/Berlin", "US/Eastern", "Asia/Calcutta", "America/Argentina/Ushuaia", "UTC"] {
            #expect(Zone(name: name)?.name == name)
        }
        for name in ["", "Berlin", "Mars/Olympus", "EST", "GMT+3", "GMT", "+02:00", "Europe/", "../etc/passwd"] {
            #expect(Zone(name: name) == nil, "\(name)")
        }
        #expect(Zones.all.count > 400)
        #expect(TimeZone.timeZoneDataVersion >= "2025")
    }

    @Test func `day numbers equal Foundation's calendar for 400 years`() {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        for dayNumber in stride(from: -70_000, to: 80_000, by: 13) {
            let date = LocalDate(dayNumber: dayNumber)
            let parts = calendar.dateComponents(
                [.year, .month, .day, .weekday], from: Date(timeIntervalSince1970: Double(dayNumber) * 86_400))
            #expect(date == LocalDate(year: parts.year!, month: parts.month!, day: parts.day!))
            let shown = date.year == parts.year! && date.month == parts.month! && date.day == parts.day!
            #expect(shown, "\(date)")
            #expect(date.weekday == Weekday.allCases[(parts.weekday! + 5) % 7])
            #expect(LocalDate(date.description) == date)
        }
        for text in ["2026-02-29", "2026-13-01", "2026-1-1", "26-01-01", "2026-01-00", "2026/01/01", "", "2026-01-1a"] {
            #expect(LocalDate(text) == nil, "\(text)")
        }
        #expect(LocalDate("2028-02-29") != nil)
        for text in ["24:00", "7:00", "07:60", "0700", "07:0a", "", "07:00:00", "-1:00"] {
            #expect(LocalTime(text) == nil, "\(text)")
        }
        #expect((0..<1440).allSatisfy { LocalTime(LocalTime(minuteOfDay: $0)!.description)?.minuteOfDay == $0 })
    }

    @Test func `local times around a clock change resolve as documented`() {
        let berlin = zone("Europe/Berlin")
        #expect(
            berlin.reading(day("2026-03-29"), clock("02:30")) == .never(jump: moment("2026-03-29T01:00:00Z")))
        #expect(
            berlin.reading(day("2026-10-25"), clock("02:30"))
                == .twice(first: moment("2026-10-25T00:30:00Z"), last: moment("2026-10-25T01:30:00Z")))
        let lordHowe = zone("Australia/Lord_Howe")
        #expect(
            lordHowe.reading(day("2026-10-04"), clock("02:15")) == .never(jump: moment("2026-10-03T15:30:00Z")))
        #expect(lordHowe.reading(day("2026-10-04"), clock("02:30")) == .once(moment("2026-10-03T15:30:00Z")))
        #expect(
            lordHowe.reading(day("2026-04-05"), clock("01:45"))
                == .twice(first: moment("2026-04-04T14:45:00Z"), last: moment("2026-04-04T15:15:00Z")))
        let samoa = zone("Pacific/Apia")
        #expect(samoa.reading(day("2011-12-30"), clock("12:00")) == .never(jump: moment("2011-12-30T10:00:00Z")))
        #expect(samoa.local(moment("2011-12-30T10:00:00Z")).date == day("2011-12-31"))
        #expect(samoa.local(moment("2011-12-30T10:00:00Z")).second == 0)
    }

    @Test func `in every zone, each minute around a change has the right wall-clock time`() {
        for zone in Zones.all {
            for change in Zones.changes(of: zone) {
                for quarter in stride(from: -100, through: 100, by: 7) {
                    let moment = change + .seconds(quarter * 60)
                    let wall = Zones.wall(moment, in: zone)
                    let (date, second) = zone.local(moment)
                    #expect(Zones.Wall(date: date, minute: second / 60) == wall, "\(zone.name) \(moment.date)")
                    let minute = moment + .seconds(-second % 60)
                    switch zone.reading(wall.date, LocalTime(minuteOfDay: wall.minute)!) {
                    case .once(let found): #expect(found == minute, "\(zone.name) \(moment.date)")
                    case .twice(let first, let last):
                        #expect(first < last && [first, last].contains(minute), "\(zone.name) \(moment.date)")
                        #expect(Zones.wall(first, in: zone) == Zones.wall(last, in: zone))
                    case .never: Issue.record("\(zone.name): \(wall) is at \(moment.date)")
                    }
                }
            }
        }
    }
}
