import FoundationEssentials

/// Encodes and decodes messages, and defines the limits that every edge enforces.
package enum WireCoding {
    /// The maximum size of a message body, in bytes.
    package static let maximumBodySize = 256 * 1024
    /// The maximum nesting of arrays and objects.
    package static let maximumDepth = 32
    /// The maximum nesting of stored documents, that of `JSONDecoder`.
    private static let maximumStoredDepth = 512
    /// The maximum size of an AMQP short string: message id, correlation id, type, routing key (AMQP 0-9-1 §4.2.5.3).
    package static let maximumShortString = 255

    /// Checks size, UTF-8 and nesting, then decodes.
    package static func decode<Message: Decodable>(
        _ type: Message.Type, from body: [UInt8], maximumSize: Int = maximumBodySize
    ) throws(WireError) -> Message {
        try parse(type, body, maximumSize)
    }

    package static func decode(
        _ type: JSONValue.Type, from body: [UInt8], maximumSize: Int = maximumBodySize
    ) throws(WireError) -> JSONValue {
        guard body.count <= maximumSize else { throw .tooLarge(bytes: body.count, limit: maximumSize) }
        return try value(body, maximumDepth: maximumDepth)
    }

    /// Decodes a document that this project stored. Does not limit size or nesting: both were limited on input, and
    /// storing may have wrapped the document.
    package static func decodeStored<Document: Decodable>(
        _ type: Document.Type, from text: String
    ) throws(WireError) -> Document {
        try decodeUnlimited(type, Array(text.utf8))
    }

    package static func decodeStored(_ type: JSONValue.Type, from text: String) throws(WireError) -> JSONValue {
        try value(Array(text.utf8), maximumDepth: maximumStoredDepth)
    }

    /// The string value of the member `name`; `nil` where it is absent, not a string, or `body` is not JSON. Used for
    /// responses of which only this value matters.
    package static func text(of name: String, in body: [UInt8]) -> String? {
        JSONReader.read(body) { (reader) throws(JSONReader.Unreadable) in
            var text: String?
            var isFound = false
            try reader.members { (reader, member) throws(JSONReader.Unreadable) in
                // The first of duplicate members counts.
                if !isFound, member == name {
                    isFound = true
                    if try reader.peek() == UInt8(ascii: "\"") {
                        text = try reader.string()
                        return
                    }
                }
                _ = try reader.value()
            }
            return text
        } ?? nil
    }

    private static func value(_ body: [UInt8], maximumDepth: Int) throws(WireError) -> JSONValue {
        if let value = JSONReader.read(
            body, maximumDepth: maximumDepth,
            { (reader) throws(JSONReader.Unreadable) in try reader.value() })
        {
            return value
        }
        // `JSONDecoder` words the error. It accepts a trailing comma.
        try JSONInputCheck.check(body, maximumDepth: maximumDepth)
        return try decodeUnlimited(JSONValue.self, body)
    }

    private static func parse<Message: Decodable>(
        _ type: Message.Type, _ body: [UInt8], _ maximumSize: Int
    ) throws(WireError) -> Message {
        guard body.count <= maximumSize else { throw .tooLarge(bytes: body.count, limit: maximumSize) }
        try JSONInputCheck.check(body, maximumDepth: maximumDepth)
        return try decodeUnlimited(type, body)
    }

    private static func decodeUnlimited<Message: Decodable>(
        _ type: Message.Type, _ body: [UInt8]
    ) throws(WireError) -> Message {
        do {
            return try JSONDecoder().decode(type, from: Data(body))
        } catch let error as WireError {
            throw error
        } catch let error as DecodingError {
            throw WireError(error)
        } catch {
            throw .notJSON("\(error)")
        }
    }

    /// Encodes as ``encode(_:)`` does.
    package static func text(_ message: some Encodable) throws(WireError) -> String {
        String(decoding: try encode(message), as: UTF8.self)
    }

    /// Encodes compact JSON with sorted keys and unescaped slashes. Equal values produce equal bytes.
    package static func encode(_ message: some Encodable) throws(WireError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return Array(try encoder.encode(message))
        } catch {
            throw .unencodable("\(error)")
        }
    }
}
