import PushProtocol

/// Parses a CSV file with FCM registration tokens, such as the table in which a backend keeps them.
///
/// Firebase has no export of registration tokens; each app server keeps its own
/// ([Firebase](https://firebase.google.com/docs/cloud-messaging/manage-tokens)). `--columns` gives the names of the
/// columns. Without it, the columns have the names of the fields, and other columns are ignored.
struct FirebaseCSVReader: RegistrationReader {
    private let table: CSVTable<DeviceField>

    /// Reads the first line.
    init(header: [UInt8], columns: [DeviceField: String]) throws(LineError) {
        table = try CSVTable(header: header, renamed: columns) { DeviceField(rawValue: $0) }
        for column in [DeviceField.token, .user] where !table.has(column) {
            throw LineError(
                "the first line has no column \(column.rawValue); --columns \(column.rawValue)=NAME names it")
        }
    }

    func registrations(in record: [UInt8]) throws(LineError) -> [DeviceFields] {
        try record.requireSize(atMost: DeviceLineReader.maximumSize)
        var fields = try table.values(of: record)
        var kind = RegistrationKind.fcmToken
        if let word = fields[.platform] {
            switch ForeignValue.Platform(word) {
            case .ios: fields[.platform] = DevicePlatform.ios.rawValue
            case .android: fields[.platform] = DevicePlatform.android.rawValue
            case .web:
                fields[.platform] = nil
                kind = .fcmWeb
            case .other, nil: throw LineError("platform is invalid: expected ios, android or web")
            }
        }
        if fields[.kind] == nil { fields[.kind] = kind.rawValue }
        for word in [DeviceField.locale, .timeZone, .appVersion] {
            fields[word] = ForeignValue.word(fields[word])
        }
        if let seen = fields[.registeredAt] {
            guard let time = ForeignValue.time(seen) else {
                throw LineError(
                    "registered_at is invalid: expected Unix seconds, or a time such as 2026-01-31 12:00:00")
            }
            fields[.registeredAt] = time
        }
        return [fields]
    }
}
