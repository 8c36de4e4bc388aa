import PushProtocol

/// Parses requests of gorush: the bodies of `POST /api/push`, or their notifications.
///
/// A notification has a list `tokens` (or one token in `to`) and a `platform`: 1 iOS, 2 Android, 3 Huawei. The members
/// are those of `PushNotification` in
/// [gorush](https://github.com/appleboy/gorush/blob/master/notify/notification.go), the numbers those of
/// [core](https://github.com/appleboy/gorush/blob/master/core/core.go). gorush knows no users. A member that the caller
/// adds to each notification names the user, such as `data.user_id`.
struct GorushReader: RegistrationReader {
    /// The maximum size of a notification, in bytes.
    static let maximumSize = 1 << 20
    /// The maximum tokens of a notification. One with more goes to several users, and names only one of them.
    static let maximumTokens = 100

    /// The path to the user in a notification.
    let userMember: String

    func registrations(in record: [UInt8]) throws(LineError) -> [DeviceFields] {
        try record.requireSize(atMost: Self.maximumSize)
        let value = try record.jsonObject()
        // The body of a request with a member before its list.
        guard let notifications = value["notifications"]?.array else { return try devices(of: value) }
        var found: [DeviceFields] = []
        for notification in notifications { found += try devices(of: notification) }
        return found
    }

    private func devices(of notification: JSONValue) throws(LineError) -> [DeviceFields] {
        var fields = try Self.target(notification)
        guard let user = ForeignValue.id(notification[path: userMember]) else {
            throw LineError("user is missing: \(userMember) is no text and no number")
        }
        fields[.user] = user
        var tokens = (notification["tokens"]?.array ?? []).compactMap(\.string)
        if let token = notification["to"]?.string, !token.isEmpty { tokens.append(token) }
        tokens.removeAll(where: \.isEmpty)
        guard !tokens.isEmpty else {
            let isTopic = notification["topic"] != nil || notification["condition"] != nil
            throw LineError(isTopic ? "the notification goes to an FCM topic and has no tokens" : "tokens is empty")
        }
        guard tokens.count <= Self.maximumTokens else {
            throw LineError("tokens has more than \(Self.maximumTokens) tokens, so they are not those of one user")
        }
        return tokens.map { token in fields.merging([.token: token]) { $1 } }
    }

    private static func target(_ notification: JSONValue) throws(LineError) -> DeviceFields {
        switch notification["platform"]?.int {
        case 1:
            let kind: RegistrationKind
            switch notification["push_type"]?.string ?? "" {
            case "", "alert", "background": kind = .alert
            case "voip": kind = .voip
            default: throw LineError("push_type is not alert, background or voip")
            }
            var fields: DeviceFields = [.kind: kind.rawValue]
            if notification["development"]?.bool == true { fields[.environment] = "development" }
            if notification["production"]?.bool == true { fields[.environment] = "production" }
            return fields
        case 2: return [.kind: RegistrationKind.fcmToken.rawValue, .platform: DevicePlatform.android.rawValue]
        case 3: throw LineError("platform is 3 (Huawei); only iOS and Android can be imported")
        default: throw LineError("platform is missing or unknown; expected 1 (iOS) or 2 (Android)")
        }
    }
}
