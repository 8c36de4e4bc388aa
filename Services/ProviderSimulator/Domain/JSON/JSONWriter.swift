import PushProtocol

/// Writes compact JSON into bytes, in the order of the calls.
///
/// Used for responses and the request log: a hundred thousand log entries take well under a second.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    private var needsComma = false

    init() {}

    /// The bytes of one object.
    static func object(_ members: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(members)
        return writer.bytes
    }

    mutating func object(_ members: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
        members(&self)
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    mutating func array<Element>(_ elements: some Sequence<Element>, _ write: (inout JSONWriter, Element) -> Void) {
        separate()
        bytes.append(UInt8(ascii: "["))
        needsComma = false
        for element in elements { write(&self, element) }
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
    }

    /// Writes a member's name; the next call writes its value.
    mutating func name(_ name: String) {
        string(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    mutating func string(_ text: String) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 { escape(byte) }
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    mutating func integer(_ value: some BinaryInteger) { verbatim(String(value).utf8) }

    mutating func value(_ value: JSONValue) {
        switch value {
        case .null: verbatim("null".utf8)
        case .bool(let bool): verbatim((bool ? "true" : "false").utf8)
        case .int(let int): integer(int)
        case .double(let double): verbatim("\(double)".utf8)
        case .string(let text): string(text)
        case .array(let elements): array(elements) { $0.value($1) }
        case .object(let members):
            object { writer in
                for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                    writer.name(name)
                    writer.value(value)
                }
            }
        }
    }

    /// Appends existing JSON.
    mutating func verbatim(_ json: some Collection<UInt8>) {
        separate()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
        case 0x0a: bytes += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
        case 0..<0x20:
            let digits = Array("0123456789abcdef".utf8)
            bytes += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 0xf)]]
        default: bytes.append(byte)
        }
    }
}

extension JSONWriter {
    mutating func member(_ name: String, _ text: String?) {
        guard let text else { return }
        self.name(name)
        string(text)
    }

    mutating func member(_ name: String, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        self.name(name)
        integer(value)
    }
}
