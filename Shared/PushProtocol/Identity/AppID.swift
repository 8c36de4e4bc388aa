/// The name of an app: the first word of every routing key and the authority for it.
///
/// One to 63 characters of `a–z`, `0–9` and `-`, starting with a letter or digit, so that it is a single word of an
/// AMQP routing key and the broker's topic permission `^<app>\.` can hold an upstream publisher to it.
package struct AppID: CheckedText {
    package static let rule = "an app id is 1–63 characters of a–z, 0–9 and '-', not starting with '-'"

    package let rawValue: String

    /// Fails for a name that is not a legal app id.
    package init?(rawValue: String) {
        guard AppID.isLegal(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// The app a routing key speaks for: its first word.
    package init?(routingKey: some StringProtocol) {
        let word = routingKey.prefix { $0 != "." }
        self.init(rawValue: String(word))
    }

    private static func isLegal(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { name in
            guard (1...63).contains(name.count), name[0] != UInt8(ascii: "-") else { return false }
            // Asked of every message.
            for byte in name {
                let isLetter = byte &- UInt8(ascii: "a") < 26
                let isDigit = byte &- UInt8(ascii: "0") < 10
                guard isLetter || isDigit || byte == UInt8(ascii: "-") else { return false }
            }
            return true
        }
    }
}
