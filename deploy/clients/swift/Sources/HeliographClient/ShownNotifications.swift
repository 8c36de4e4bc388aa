import Foundation

extension HeliographClient {
    /// The member of a clear command that names notifications.
    private static let clearMember = "heliograph_clear"

    /// The identifiers of the shown notifications that a background push removes; empty for any other push.
    ///
    /// A clear command names notifications that were taken back, or read on another device. An identifier is that of the
    /// notification request: the notification's id, or the collapse key of its rule.
    ///
    /// - Parameter userInfo: The payload of the push, from APNs or from FCM.
    public static func clearedNotifications(in userInfo: [AnyHashable: Any]) -> [String] {
        // FCM puts the data beside `aps`, and carries an array as JSON text.
        let data = userInfo["data"] as? [String: Any]
        switch data?[clearMember] ?? userInfo[clearMember] {
        case let identifiers as [String]: return identifiers
        case let text as String: return (try? JSONDecoder().decode([String].self, from: Data(text.utf8))) ?? []
        default: return []
        }
    }
}
