/// A person, as the upstream services and the bearer tokens name them: opaque, compared byte for byte, at most 256
/// UTF-8 bytes. It is unique only together with an ``AppID``.
package struct UserID: CheckedText {
    package static let rule = "a user id is 1–256 bytes without control characters"
    /// The longest accepted id, in UTF-8 bytes.
    package static let maximumLength = 256

    package let rawValue: String

    /// Fails for an empty id and for one that is too long or holds a control character.
    package init?(rawValue: String) {
        guard !rawValue.isEmpty, rawValue.utf8.count <= UserID.maximumLength,
            rawValue.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        self.rawValue = rawValue
    }
}
