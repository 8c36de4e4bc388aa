/// One app on one device, as the app itself names it (such as its `X-Client-Id`): 1 to 128 visible ASCII characters,
/// unique within an ``AppID``.
package struct InstallationID: CheckedText {
    package static let rule = "an installation id is 1–128 visible ASCII characters"
    /// The longest accepted id, in bytes.
    package static let maximumLength = 128

    package let rawValue: String

    /// Fails for an empty id and for one that is too long or holds anything but visible ASCII.
    package init?(rawValue: String) {
        guard (1...InstallationID.maximumLength).contains(rawValue.utf8.count), rawValue.isVisibleASCII else {
            return nil
        }
        self.rawValue = rawValue
    }
}
