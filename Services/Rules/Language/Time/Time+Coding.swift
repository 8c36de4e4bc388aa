import PushProtocol

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
        let container = try decoder.singleValueContainer()
        guard let day = Weekday(rawValue: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not one of \(Weekday.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        self = day
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

extension LocalTime: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let time = LocalTime(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time such as 07:00")
        }
        self = time
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension Zone: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let zone = Zone(name: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "not a zone of the tz database such as Europe/Berlin")
        }
        self = zone
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}
