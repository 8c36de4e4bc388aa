import PushProtocol

/// Parses the installations of a variant of the AeroGear UnifiedPush Server: the JSON array of
/// `GET /rest/export/{variantId}/installations/`, or the file for its importer.
///
/// The members are those of
/// [Installation](https://github.com/aerogear/aerogear-unifiedpush-server/blob/master/model/api/src/main/java/org/jboss/aerogear/unifiedpush/api/Installation.java):
/// `alias` is the user, and an installation that is not `enabled` gets no notifications. An export contains one variant
/// and does not name it, so `--platform` and, for iOS, `--environment` give its type. Categories are not imported.
struct AeroGearReader: RegistrationReader {
    private static let maximumSize = 64 << 10

    func registrations(in record: [UInt8]) throws(LineError) -> [DeviceFields] {
        try record.requireSize(atMost: Self.maximumSize)
        let installation = try record.jsonObject()
        guard installation["enabled"]?.bool != false else { throw LineError("disabled in AeroGear") }
        guard let user = ForeignValue.id(installation["alias"]) else {
            throw LineError("user is missing: the installation has no alias")
        }
        var fields: DeviceFields = [.user: user]
        let words = ["operatingSystem", "platform", "deviceType"].compactMap { installation[$0]?.string }
        switch words.lazy.compactMap(ForeignValue.Platform.init).first {
        case .ios: fields[.platform] = DevicePlatform.ios.rawValue
        case .android: fields[.platform] = DevicePlatform.android.rawValue
        case .web, .other: throw LineError("the platform is not iOS or Android")
        case nil: break
        }
        // The server accepts blanks and hyphens in an iOS token.
        let token = installation["deviceToken"]?.string
        let digits = token.map { $0.filter { $0 != " " && $0 != "-" } }
        fields[.token] = digits.flatMap { DeviceToken($0, for: .apns) } == nil ? token : digits
        return [fields]
    }
}
