/// A dotted app version of one to eight numbers, compared numerically: `2.0` equals `2`, and `2.10` follows `2.9`.
package struct AppVersion: ValidatedString {
    package static let rule = "a version is 1–8 numbers of up to 9 digits with dots between them, such as 4.2.1"

    package let rawValue: String

    package init?(rawValue: String) {
        let numbers = rawValue.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...8).contains(numbers.count),
            numbers.allSatisfy({ number in
                (1...9).contains(number.count)
                    && number.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            })
        else { return nil }
        self.rawValue = rawValue
    }
}
