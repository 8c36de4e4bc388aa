extension QuietHours: Decodable {
    private enum CodingKeys: String, CodingKey { case days, start, end }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        days = try values.decodeIfPresent(Set<Weekday>.self, forKey: .days) ?? Set(Weekday.allCases)
        start = try values.decode(LocalTime.self, forKey: .start)
        end = try values.decode(LocalTime.self, forKey: .end)
    }
}

extension Weekday: Decodable {}

extension LocalTime: Decodable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.decodeText("a time such as 07:00") { LocalTime($0) }
    }
}

extension Zone: Decodable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.decodeText("a zone of the tz database such as Europe/Berlin") { Zone(name: $0) }
    }
}

extension Decoder {
    /// Decodes a value that is stored as a string.
    ///
    /// - Parameters:
    ///   - expected: the valid strings, for the error.
    ///   - parse: returns the value of a string; `nil` if the string is invalid.
    func decodeText<Value>(_ expected: String, _ parse: (String) -> Value?) throws -> Value {
        let container = try singleValueContainer()
        guard let value = parse(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not \(expected)")
        }
        return value
    }
}
