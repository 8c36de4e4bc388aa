/// The id of an app: the first word of every routing key.
///
/// 1 to 63 characters of `a–z`, `0–9` and `-`, not starting with `-`. It is one word of an AMQP routing key, so the
/// broker's topic permission `^<app>\.` restricts an upstream publisher to its app.
package struct AppID: ValidatedString {
    package static let rule = "an app id is 1–63 characters of a–z, 0–9 and '-', not starting with '-'"

    package let rawValue: String

    /// Returns `nil` for an invalid app id.
    package init?(rawValue: String) {
        guard AppID.isLegal(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// The app of a routing key: its first word.
    package init?(routingKey: some StringProtocol) {
        let word = routingKey.prefix { $0 != "." }
        self.init(rawValue: String(word))
    }

    private static func isLegal(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { name in
            guard (1...63).contains(name.count), name[0] != UInt8(ascii: "-") else { return false }
            // This check runs for every message.
            for byte in name {
                let isLetter = byte &- UInt8(ascii: "a") < 26
                let isDigit = byte &- UInt8(ascii: "0") < 10
                guard isLetter || isDigit || byte == UInt8(ascii: "-") else { return false }
            }
            return true
        }
    }
}
