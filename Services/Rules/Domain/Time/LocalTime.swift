/// A time of day to the minute, without a time zone.
struct LocalTime: Hashable, Comparable, Sendable {
    /// From 0 to 1439.
    let minuteOfDay: Int

    init?(minuteOfDay: Int) {
        guard (0..<1440).contains(minuteOfDay) else { return nil }
        self.minuteOfDay = minuteOfDay
    }

    /// Parses `07:00`; `nil` for `24:00`.
    init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"),
            [0, 1, 3, 4].allSatisfy({ digits.contains(bytes[$0]) })
        else { return nil }
        func number(_ at: Int) -> Int {
            Int(bytes[at] - digits.lowerBound) * 10 + Int(bytes[at + 1] - digits.lowerBound)
        }
        guard number(0) < 24, number(3) < 60 else { return nil }
        minuteOfDay = number(0) * 60 + number(3)
    }

    static func < (a: LocalTime, b: LocalTime) -> Bool { a.minuteOfDay < b.minuteOfDay }
}

extension LocalTime: CustomStringConvertible {
    var description: String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(minuteOfDay / 60)):\(two(minuteOfDay % 60))"
    }
}
