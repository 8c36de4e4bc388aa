/// One app on one device, as the app itself names it (such as its `X-Client-Id`): 1 to 128 visible ASCII characters,
/// unique within an ``AppID``.
package struct InstallationID: RawRepresentable, Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The longest accepted id, in bytes.
    package static let maximumLength = 128

    package let rawValue: String

    /// Fails for an empty id and for one that is too long or holds anything but visible ASCII.
    package init?(rawValue: String) {
        guard (1...InstallationID.maximumLength).contains(rawValue.utf8.count),
            rawValue.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
        self.rawValue = rawValue
    }

    package var description: String { rawValue }

    package static func < (a: InstallationID, b: InstallationID) -> Bool { a.rawValue < b.rawValue }
}

extension InstallationID: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let id = InstallationID(rawValue: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "an installation id is 1–128 visible ASCII characters")
        }
        self = id
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
