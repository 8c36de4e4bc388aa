import PushProtocol

/// Parses the CSV export of OneSignal's subscriptions, which `POST /players/csv_export` writes.
///
/// Columns after [OneSignal's documentation](https://documentation.onesignal.com/reference/csv-export): `identifier` is
/// the push token, `invalid_identifier` is `t` for an unsubscribed device, and `external_user_id`, `notification_types`
/// and `timezone_id` are optional columns (`extra_fields`). The numbers of `device_type` are those of
/// [its API](https://github.com/OneSignal/onesignal-rust-api/blob/main/docs/Player.md); a `notification_types` below 1
/// means that the device takes no notifications. The names of its newer API (`token`, `external_id`, `app_version`,
/// `iOSPush`, `AndroidPush`) are accepted too.
struct OneSignalReader: RegistrationReader {
    private enum Column: Hashable {
        case token, deviceType, user, isInvalid, notificationTypes, language, timeZone, appVersion, lastActive

        init?(_ name: String) {
            switch name.lowercased() {
            case "identifier", "token": self = .token
            case "device_type", "type": self = .deviceType
            case "external_user_id", "external_id": self = .user
            case "invalid_identifier": self = .isInvalid
            case "notification_types": self = .notificationTypes
            case "language": self = .language
            case "timezone_id": self = .timeZone
            case "game_version", "app_version": self = .appVersion
            case "last_active": self = .lastActive
            default: return nil
            }
        }
    }

    /// In bytes. Tags of a device may have many kilobytes.
    private static let maximumSize = 60 << 10

    private let table: CSVTable<Column>

    /// Reads the first line.
    init(header: [UInt8]) throws(LineError) {
        table = try CSVTable(header: header) { Column($0) }
        guard table.has(.token), table.has(.deviceType) else {
            throw LineError("the first line lacks the columns identifier and device_type of a OneSignal export")
        }
        guard table.has(.user) else {
            throw LineError(
                "the first line lacks the column external_user_id; export with \"extra_fields\":[\"external_user_id\"]")
        }
    }

    func registrations(in record: [UInt8]) throws(LineError) -> [DeviceFields] {
        try record.requireSize(atMost: Self.maximumSize)
        let row = try table.values(of: record)
        var fields = try Self.target(row)
        let isInvalid = ["t", "true", "1"].contains(row[.isInvalid]?.lowercased())
        guard !isInvalid, (row[.notificationTypes].flatMap(Int.init) ?? 1) >= 1 else {
            throw LineError("unsubscribed in OneSignal")
        }
        guard let user = row[.user] else { throw LineError("user is missing: external_user_id is empty") }
        fields[.user] = user
        fields[.token] = row[.token]
        fields[.locale] = ForeignValue.word(row[.language])
        fields[.timeZone] = ForeignValue.word(row[.timeZone])
        fields[.appVersion] = ForeignValue.word(row[.appVersion])
        if let seen = row[.lastActive], seen != "0" {
            guard let time = ForeignValue.time(seen) else {
                throw LineError("last_active is invalid: expected Unix seconds, or a time such as 2026-01-31 12:00:00")
            }
            fields[.registeredAt] = time
        }
        return [fields]
    }

    private static func target(_ row: [Column: String]) throws(LineError) -> DeviceFields {
        let type = row[.deviceType]?.lowercased()
        switch type {
        case "0", "ios", "iospush": return [.platform: DevicePlatform.ios.rawValue]
        case "1", "android", "androidpush":
            // The SDK gives a FID in place of a token if the app's manifest says so (`PushRegistratorFCM.kt`).
            let isFID = row[.token]?.utf8.count == fidLength
            let kind: RegistrationKind = isFID ? .fid : .fcmToken
            return [.kind: kind.rawValue, .platform: DevicePlatform.android.rawValue]
        default:
            guard let type, let name = others[type] else {
                throw LineError("device_type is unknown; expected 0 (iOS) or 1 (Android)")
            }
            throw LineError("device_type is \(name); only iOS and Android can be imported")
        }
    }

    /// The length of a Firebase installation id, in bytes.
    private static let fidLength = 22

    private static let others = [
        "2": "Amazon", "3": "Windows Phone", "4": "a Chrome extension", "5": "Chrome", "6": "Windows", "7": "Safari",
        "8": "Firefox", "9": "macOS", "10": "Alexa", "11": "e-mail", "12": "Edge", "13": "Huawei", "14": "SMS",
        "17": "Safari", "email": "e-mail", "sms": "SMS", "huaweipush": "Huawei", "fireospush": "Amazon",
        "chromepush": "Chrome", "firefoxpush": "Firefox", "safaripush": "Safari", "safarilegacypush": "Safari",
        "macospush": "macOS", "windowspush": "Windows", "chromeextensionpush": "a Chrome extension",
    ]
}
