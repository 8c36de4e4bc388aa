package import FoundationEssentials
package import PushProtocol

/// Compact JSON with sorted keys and unescaped slashes, as sent to providers and counted by their size limits.
package enum JSONText {
    package static func bytes(of value: JSONValue) -> [UInt8] {
        var output = ByteWriter()
        output.value(value)
        return output.bytes
    }
}

/// Up to two offsets in a text, ascending, stored inline.
package struct TextOffsets: Hashable, Sendable {
    private var first = 0
    private var second = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }
    package var isFull: Bool { count == 2 }

    package mutating func append(_ offset: Int) {
        assert(!isFull)
        if count == 0 { first = offset } else { second = offset }
        count += 1
    }

    package subscript(index: Int) -> Int { index == 0 ? first : second }
}

extension TextOffsets: ExpressibleByArrayLiteral {
    package init(arrayLiteral places: Int...) {
        self.init()
        for offset in places { append(offset) }
    }
}

/// JSON text with placeholders: encoded once for a push, filled for each target.
package struct JSONTemplate: Hashable, Sendable {
    private let text: [UInt8]
    /// The offsets in `text` at which ids are inserted.
    private let placeholders: TextOffsets
    /// The offsets in `text` of strings that depend on the time.
    private let timeOffsets: TextOffsets

    /// Encodes `value`.
    ///
    /// - Parameters:
    ///   - value: the JSON.
    ///   - placeholder: strings equal to it become placeholders.
    ///   - timed: strings equal to a key are replaced by its value; their offsets are ``timeOffsets(filledWith:)``.
    package init(_ value: JSONValue, placeholder: String, timed: [String: String] = [:]) {
        var output = ByteWriter()
        var placeholders = TextOffsets()
        var timeOffsets = TextOffsets()
        output.value(value) { output, text in
            if text == placeholder, !placeholders.isFull {
                placeholders.append(output.count + 1)
                output.put("\"\"")
            } else if let known = timed[text], !timeOffsets.isFull {
                timeOffsets.append(output.count + 1)
                output.string(known)
            } else {
                output.string(text)
            }
        }
        text = output.bytes
        self.placeholders = placeholders
        self.timeOffsets = timeOffsets
    }

    /// Takes encoded JSON without its ids.
    ///
    /// - Parameters:
    ///   - text: the JSON.
    ///   - placeholders: the offsets of the ids, ascending.
    ///   - timeOffsets: the offsets of strings that depend on the time, ascending.
    package init(_ text: [UInt8], placeholders: TextOffsets, timeOffsets: TextOffsets = TextOffsets()) {
        self.text = text
        self.placeholders = placeholders
        self.timeOffsets = timeOffsets
    }

    /// The offsets of strings that depend on the time, once each placeholder is filled with `count` bytes.
    package func timeOffsets(filledWith count: Int) -> TextOffsets {
        var filled = TextOffsets()
        for index in 0..<timeOffsets.count {
            let time = timeOffsets[index]
            var offset = time
            for placeholder in 0..<placeholders.count where placeholders[placeholder] <= time { offset += count }
            filled.append(offset)
        }
        return filled
    }

    /// The size of the text once each placeholder is filled with `count` bytes.
    package func count(filledWith count: Int) -> Int { text.count + placeholders.count * count }

    /// Writes the text with `id`, in lower case, in every placeholder.
    ///
    /// - Parameter first: the offset to start from, before the first placeholder.
    package func write(from first: Int, filledWith id: UUID, to json: inout ByteWriter) {
        text.withUnsafeBufferPointer { text in
            var start = first
            for index in 0..<placeholders.count {
                let placeholder = placeholders[index]
                json.put(UnsafeBufferPointer(rebasing: text[start..<placeholder]))
                json.put(id, .lower)
                start = placeholder
            }
            json.put(UnsafeBufferPointer(rebasing: text[start...]))
        }
    }
}
