/// One installation of an app on a device, identified by the app (such as its `X-Client-Id`): 1 to 128 visible ASCII
/// characters. Unique within an ``AppID``.
package struct InstallationID: ValidatedString {
    package static let rule = "an installation id is 1–128 visible ASCII characters"
    /// The maximum length, in bytes.
    package static let maximumLength = 128

    package let rawValue: String

    /// Returns `nil` for an invalid id.
    package init?(rawValue: String) {
        guard (1...InstallationID.maximumLength).contains(rawValue.utf8.count), rawValue.isVisibleASCII else {
            return nil
        }
        self.rawValue = rawValue
    }
}
