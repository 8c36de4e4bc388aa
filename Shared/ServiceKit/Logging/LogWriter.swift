import Logging

/// Builds the bytes of a line: JSON members, or plain text with escaped control characters.
struct LogWriter {
    /// The length above which a text is truncated, in characters.
    let textLimit: Int
    private(set) var bytes: [UInt8] = []
    private var needsComma = false

    init(textLimit: Int) {
        self.textLimit = textLimit
        bytes.reserveCapacity(512)
    }

    mutating func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func member(_ name: String, _ value: String) {
        self.name(name)
        quoted(value)
    }

    mutating func member(_ name: String, number: Int) {
        self.name(name)
        raw(String(number))
    }

    mutating func member(_ name: String, _ value: Logger.MetadataValue) {
        self.name(name)
        write(value)
    }

    private mutating func name(_ name: String) {
        if needsComma { raw(",") }
        quoted(name)
        raw(":")
        needsComma = true
    }

    private mutating func write(_ value: Logger.MetadataValue) {
        switch value {
        case .string(let text): quoted(text)
        case .stringConvertible(let value): quoted(value.description)
        case .array(let values):
            raw("[")
            for (index, value) in values.enumerated() {
                if index > 0 { raw(",") }
                write(value)
            }
            raw("]")
        case .dictionary(let members):
            raw("{")
            needsComma = false
            for (name, value) in members.sorted(by: { $0.key < $1.key }) { member(name, value) }
            raw("}")
            needsComma = true
        }
    }

    private mutating func quoted(_ text: String) {
        raw("\"")
        escaped(text) { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }
        raw("\"")
    }

    /// Writes text with escaped control characters.
    mutating func plain(_ text: String) { escaped(text) { _ in false } }

    /// Writes a value, quoted if it is empty or contains spaces or quotes.
    mutating func word(_ text: String) {
        if text.isEmpty || text.utf8.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: "\"") }) {
            quoted(text)
        } else {
            plain(text)
        }
    }

    private mutating func escaped(_ text: String, _ needsBackslash: (UInt8) -> Bool) {
        for byte in text.prefix(textLimit).utf8 {
            switch byte {
            case 0x0a: raw("\\n")
            case 0x0d: raw("\\r")
            case 0x09: raw("\\t")
            case 0..<0x20, 0x7f:
                let digits = String(byte, radix: 16)
                raw("\\u" + String(repeating: "0", count: 4 - digits.count) + digits)
            default:
                if needsBackslash(byte) { bytes.append(UInt8(ascii: "\\")) }
                bytes.append(byte)
            }
        }
        if text.utf8.count > textLimit, text.count > textLimit { raw("…") }
    }
}
