/// What users of an app are gathered under, such as the topic `photos` or the tag `beta`: 1 to 128 visible ASCII
/// characters, unique within an ``AppID`` and, apart from each other, among its topics and among its tags.
package struct GroupName: CheckedText {
    package static let rule = "a topic or tag is 1–128 visible ASCII characters"
    /// The longest accepted name, in bytes.
    package static let maximumLength = 128

    package let rawValue: String

    /// Fails for an empty name and for one that is too long or holds anything but visible ASCII.
    package init?(rawValue: String) {
        guard (1...GroupName.maximumLength).contains(rawValue.utf8.count), rawValue.isVisibleASCII else { return nil }
        self.rawValue = rawValue
    }
}

/// Users of an app who belong together. A topic is what users subscribe to; a tag is what operators and upstream
/// services put on users.
package enum UserGroup: Hashable, Sendable {
    case topic(GroupName)
    case tag(GroupName)

    package var name: GroupName {
        switch self {
        case .topic(let name), .tag(let name): name
        }
    }
}
