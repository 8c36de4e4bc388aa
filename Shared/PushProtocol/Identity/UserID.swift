/// A user, as upstream services and bearer tokens identify them: opaque, compared byte by byte, at most 256 UTF-8
/// bytes. Unique within an ``AppID``.
package struct UserID: ValidatedString {
    package static let rule = "a user id is 1–256 bytes without control characters"
    /// The maximum length, in UTF-8 bytes.
    package static let maximumLength = 256

    package let rawValue: String

    /// Returns `nil` for an invalid user id.
    package init?(rawValue: String) {
        guard !rawValue.isEmpty, rawValue.utf8.count <= UserID.maximumLength, rawValue.hasNoControls else { return nil }
        self.rawValue = rawValue
    }
}

extension JSONValue {
    /// The user id in a string or a number; `nil` for other values.
    package var userID: UserID? {
        switch self {
        case .string(let text): UserID(rawValue: text)
        case .int(let number): UserID(rawValue: String(number))
        case .null, .bool, .double, .array, .object: nil
        }
    }
}
