/// The binary form of `numeric` (`numeric_send`), which aggregates and `extract` return. Decoding only; this project
/// stores integers and doubles.
struct Numeric {
    private enum Sign: UInt16 {
        case positive = 0x0000
        case negative = 0x4000
        case notANumber = 0xC000
        case infinity = 0xD000
        case negativeInfinity = 0xF000
    }

    private let sign: Sign
    /// The first digit's exponent of 10,000.
    private let weight: Int
    /// Digits in base 10,000.
    private let digits: [Int64]

    init(_ cell: PostgresCell) throws(PostgresMismatch) {
        var bytes = try cell.required(for: "a number")
        guard let count = bytes.takeBigEndian(UInt16.self), let weight = bytes.takeBigEndian(Int16.self),
            let rawSign = bytes.takeBigEndian(UInt16.self), let sign = Sign(rawValue: rawSign),
            bytes.takeBigEndian(UInt16.self) != nil, bytes.count == Int(count) * 2
        else { throw .form(cell, expected: "a number", "in an unknown form") }
        var digits: [Int64] = []
        while let digit = bytes.takeBigEndian(Int16.self) {
            guard (0..<10_000).contains(digit) else {
                throw .form(cell, expected: "a number", "with the digit \(digit)")
            }
            digits.append(Int64(digit))
        }
        self.sign = sign
        self.weight = Int(weight)
        self.digits = digits
    }

    /// The exact value, if it is an integer in range.
    var integer: Int64? {
        guard sign == .positive || sign == .negative else { return nil }
        guard digits.dropFirst(max(0, weight + 1)).allSatisfy({ $0 == 0 }) else { return nil }
        if digits.isEmpty { return 0 }
        // Computed as a negative number, whose range is larger by one.
        var value: Int64 = 0
        for position in 0..<max(0, weight + 1) {
            let digit = position < digits.count ? digits[position] : 0
            let (product, tooBig) = value.multipliedReportingOverflow(by: 10_000)
            let (difference, tooLow) = product.subtractingReportingOverflow(digit)
            if tooBig || tooLow { return nil }
            value = difference
        }
        if sign == .negative { return value }
        return value == .min ? nil : -value
    }

    /// The nearest double. Parsed from decimal text, because arithmetic on the digits would round at each step.
    var double: Double {
        switch sign {
        case .notANumber: return .nan
        case .infinity: return .infinity
        case .negativeInfinity: return -.infinity
        case .positive, .negative: break
        }
        var text = sign == .negative ? "-0" : "0"
        for digit in digits {
            let padded = String(digit)
            text += String(repeating: "0", count: 4 - padded.count) + padded
        }
        text += "e\((weight - digits.count + 1) * 4)"
        return Double(text) ?? .nan
    }
}
