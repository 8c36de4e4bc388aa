import FoundationEssentials

/// How bytes from the bus become messages and back: one place for the limits every edge enforces.
package enum WireCoding {
    /// The largest message body any stage accepts, in bytes.
    package static let maximumBodySize = 256 * 1024
    /// The deepest nesting of arrays and objects that is accepted.
    package static let maximumDepth = 32
    /// The most bytes of an AMQP short string: message id, correlation id, type, routing key (AMQP 0-9-1 §4.2.5.3).
    package static let maximumShortString = 255

    /// Checks size, UTF-8 and nesting before a parser sees the bytes, then decodes.
    package static func decode<Message: Decodable>(
        _ type: Message.Type, from body: [UInt8], maximumSize: Int = maximumBodySize
    ) throws(WireError) -> Message {
        try parse(type, body, maximumSize)
    }

    /// The same for any JSON value, without the general decoder where nothing about it is unusual (``JSONReader``).
    package static func decode(
        _ type: JSONValue.Type, from body: [UInt8], maximumSize: Int = maximumBodySize
    ) throws(WireError) -> JSONValue {
        if body.count <= maximumSize, let value = JSONValue.read(body) { return value }
        return try parse(type, body, maximumSize)
    }

    /// Decodes a document that this project stored itself. Neither its size nor its nesting is limited: both were limited
    /// where the document entered, and storing it may have wrapped or lengthened it.
    package static func decodeStored<Document: Decodable>(
        _ type: Document.Type, from text: String
    ) throws(WireError) -> Document {
        try decodeUnlimited(type, Array(text.utf8))
    }

    /// The same for any JSON value.
    package static func decodeStored(_ type: JSONValue.Type, from text: String) throws(WireError) -> JSONValue {
        let body = Array(text.utf8)
        if let value = JSONValue.read(body) { return value }
        return try decodeUnlimited(type, body)
    }

    /// The text that the member `name` of an object is; `nil` where it is none, or the body no JSON. For answers of which
    /// only that is wanted.
    package static func text(of name: StaticString, in body: [UInt8]) -> String? {
        let found = body.withUnsafeBufferPointer { bytes -> String?? in
            var reader = JSONReader(bytes)
            var text: String?
            var seen = OnceEach()
            do throws(JSONReader.Unusual) {
                try reader.object { (reader, key) throws(JSONReader.Unusual) in
                    guard name ~= key else { return try reader.skip(key) }
                    try seen.take(0)
                    text = try reader.string()
                }
                try reader.end()
                return .some(text)
            } catch {
                return nil
            }
        }
        // What is wrong with a body that is not JSON is of no interest.
        return found ?? (try? decode(JSONValue.self, from: body))?.object?["\(name)"]?.string
    }

    private static func parse<Message: Decodable>(
        _ type: Message.Type, _ body: [UInt8], _ maximumSize: Int
    ) throws(WireError) -> Message {
        guard body.count <= maximumSize else { throw .tooLarge(bytes: body.count, limit: maximumSize) }
        try JSONScan.check(body, maximumDepth: maximumDepth)
        return try decodeUnlimited(type, body)
    }

    private static func decodeUnlimited<Message: Decodable>(
        _ type: Message.Type, _ body: [UInt8]
    ) throws(WireError) -> Message {
        do {
            return try JSONDecoder().decode(type, from: Data(body))
        } catch let error as DecodingError {
            throw WireError(error)
        } catch {
            throw .notJSON("\(error)")
        }
    }

    /// Compact JSON with sorted keys and plain slashes: the same value gives the same bytes.
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
