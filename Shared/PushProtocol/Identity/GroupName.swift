/// The name of a topic or a tag, such as `photos` or `beta`: 1 to 128 visible ASCII characters. Unique among the
/// topics, or the tags, of an ``AppID``.
package struct GroupName: ValidatedString {
    package static let rule = "a topic or tag is 1–128 visible ASCII characters"
    /// The maximum length, in bytes.
    package static let maximumLength = 128

    package let rawValue: String

    /// Returns `nil` for an invalid name.
    package init?(rawValue: String) {
        guard (1...GroupName.maximumLength).contains(rawValue.utf8.count), rawValue.isVisibleASCII else { return nil }
        self.rawValue = rawValue
    }
}

/// A group of an app's users. Users subscribe to topics; operators and upstream services assign tags.
package enum UserGroup: Hashable, Sendable {
    case topic(GroupName)
    case tag(GroupName)

    package var name: GroupName {
        switch self {
        case .topic(let name), .tag(let name): name
        }
    }
}
