import Foundation
import PushProtocol
import Testing

@Suite struct RFC3339Tests {
    @Test func `every millisecond is formatted exactly and parsed again`() {
        for millisecond in 0..<1000 {
            let moment = Timestamp(milliseconds: 1_767_225_600_000 + Int64(millisecond))
            let text = RFC3339.string(from: moment.date)
            let digits = String(1000 + millisecond).dropFirst()
            #expect(text == "2026-01-01T00:00:00.\(digits)Z")
            #expect(RFC3339.date(from: text).map(Timestamp.init) == moment)
        }
    }

    @Test(arguments: [0, 1, 999]) func `whole seconds are rounded down`(millisecond: Int64) {
        let moment = Timestamp(milliseconds: 1_767_225_600_000 + millisecond)
        #expect(RFC3339.seconds(from: moment.date) == "2026-01-01T00:00:00Z")
    }

    @Test func `the ends of the range are formatted and parsed again`() {
        for text in ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.000Z"] {
            #expect(RFC3339.date(from: text).map(RFC3339.string(from:)) == text)
        }
    }

    /// Their formatting once ended the process. In seconds since 1970, because the testing library describes arguments,
    /// and the description of some dates ends the process, too.
    @Test(arguments: [
        9_223_372_036_854_776, -9_223_372_036_854_776, 253_402_300_800, -62_135_769_601, 1e300, -1e300,
        Double.infinity, -.infinity, .nan,
    ])
    func `a date outside the years 0001 to 9999 becomes their end`(seconds: Double) {
        let date = Date(timeIntervalSince1970: seconds)
        let end = seconds < 0 ? "0001-01-01T00:00:00" : "9999-12-31T23:59:59"
        #expect(RFC3339.seconds(from: date) == end + "Z")
        #expect(RFC3339.string(from: date) == end + (seconds < 0 ? ".000Z" : ".999Z"))
        #expect(RFC3339.seconds(from: Timestamp(date).date).hasPrefix(seconds.isNaN ? "0001" : String(end.prefix(4))))
    }

    @Test(arguments: [
        "99999-01-01T00:00:00Z", "+999999999-12-31T23:59:59Z", "292277026596-12-04T15:30:08Z", "-0001-01-01T00:00:00Z",
        "0000-12-31T00:00:00Z", "9999-12-31T23:59:59-01:00",
    ])
    func `a time outside the years 0001 to 9999 is refused`(text: String) {
        #expect(RFC3339.date(from: text) == nil)
    }
}
