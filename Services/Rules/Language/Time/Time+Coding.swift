extension QuietHours: Codable {
    private enum CodingKeys: String, CodingKey { case days, start, end }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        days = try values.decodeIfPresent(Set<Weekday>.self, forKey: .days) ?? Set(Weekday.allCases)
        start = try values.decode(LocalTime.self, forKey: .start)
        end = try values.decode(LocalTime.self, forKey: .end)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        // In the order of the week, so equal settings give equal text.
        try values.encode(Weekday.allCases.filter(days.contains), forKey: .days)
        try values.encode(start, forKey: .start)
        try values.encode(end, forKey: .end)
    }
}

extension Weekday: Codable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.decodeText("one of \(Weekday.allCases.map(\.rawValue).joined(separator: ", "))") {
            Weekday(rawValue: $0)
        }
    }

    package func encode(to encoder: any Encoder) throws { try encoder.encodeText(rawValue) }
}

extension LocalTime: Codable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.decodeText("a time such as 07:00") { LocalTime($0) }
    }

    package func encode(to encoder: any Encoder) throws { try encoder.encodeText(description) }
}

extension Zone: Codable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.decodeText("a zone of the tz database such as Europe/Berlin") { Zone(name: $0) }
    }

    package func encode(to encoder: any Encoder) throws { try encoder.encodeText(name) }
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

extension Encoder {
    func encodeText(_ text: String) throws {
        var container = singleValueContainer()
        try container.encode(text)
    }
}
