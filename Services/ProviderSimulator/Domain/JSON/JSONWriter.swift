import PushProtocol

/// Writes objects and arrays in the order of the calls. Adds the commas to `ByteWriter`.
struct JSONWriter: ~Copyable {
    private var output = ByteWriter()
    private var needsComma = false

    var bytes: [UInt8] { output.bytes }

    static func object(_ members: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(members)
        return writer.bytes
    }

    mutating func object(_ members: (inout JSONWriter) -> Void) {
        open("{")
        members(&self)
        close("}")
    }

    mutating func array<Element>(_ elements: some Sequence<Element>, _ write: (inout JSONWriter, Element) -> Void) {
        open("[")
        for element in elements { write(&self, element) }
        close("]")
    }

    /// Writes a member's name; the next call writes its value.
    mutating func name(_ name: String) {
        string(name)
        output.put(":")
        needsComma = false
    }

    mutating func string(_ text: String) { write { $0.string(text) } }

    mutating func value(_ value: JSONValue) { write { $0.value(value) } }

    /// Appends existing JSON.
    mutating func verbatim(_ json: [UInt8]) { write { $0.put(json) } }

    private mutating func write(_ value: (inout ByteWriter) -> Void) {
        if needsComma { output.put(",") }
        value(&output)
        needsComma = true
    }

    private mutating func open(_ bracket: StaticString) {
        write { $0.put(bracket) }
        needsComma = false
    }

    private mutating func close(_ bracket: StaticString) {
        output.put(bracket)
        needsComma = true
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
        write { $0.put(Int64(value)) }
    }
}
