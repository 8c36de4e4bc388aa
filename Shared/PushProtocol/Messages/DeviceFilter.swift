/// Selects devices of an audience. A device matches when all given criteria are known for it and match. Absent
/// criteria are ignored, an empty list matches nothing, and unknown members are rejected.
package struct DeviceFilter: Encodable, Hashable, Sendable {
    package var platform: [Platform]?
    /// BCP 47 language ranges (RFC 4647 §3.3.1): `de` matches `de` and `de-CH`, not `den`. Case-insensitive.
    package var locale: [String]?
    /// IANA time zones, such as `Europe/Zurich`.
    package var timeZone: [String]?
    package var appVersion: VersionRange?
    /// The device's last registration. Apps register at each launch.
    package var lastSeen: TimeRange?

    package init(
        platform: [Platform]? = nil, locale: [String]? = nil, timeZone: [String]? = nil,
        appVersion: VersionRange? = nil,
        lastSeen: TimeRange? = nil
    ) {
        self.platform = platform
        self.locale = locale
        self.timeZone = timeZone
        self.appVersion = appVersion
        self.lastSeen = lastSeen
    }

    /// The platform, as far as the registration states it.
    package enum Platform: String, Codable, Hashable, Sendable, CaseIterable {
        /// Registered with APNs, or with FCM as `ios`.
        case apple
        /// Registered with FCM by any other app.
        case android
        /// A browser, registered with FCM or by a Web Push subscription.
        case web
    }

    /// Versions from `from` (inclusive) until `until` (exclusive). An absent bound is open.
    package struct VersionRange: Encodable, Hashable, Sendable {
        package var from: AppVersion?
        package var until: AppVersion?

        package init(from: AppVersion? = nil, until: AppVersion? = nil) {
            self.from = from
            self.until = until
        }
    }

    /// Times from `after` (inclusive) until `before` (exclusive). An absent bound is open.
    package struct TimeRange: Encodable, Hashable, Sendable {
        package var after: Timestamp?
        package var before: Timestamp?

        package init(after: Timestamp? = nil, before: Timestamp? = nil) {
            self.after = after
            self.before = before
        }
    }
}

extension DeviceFilter: Decodable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case platform, locale, timeZone, appVersion, lastSeen }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init(
            platform: try container.decodeIfPresent([Platform].self, forKey: .platform),
            locale: try container.decodeIfPresent([String].self, forKey: .locale),
            timeZone: try container.decodeIfPresent([String].self, forKey: .timeZone),
            appVersion: try container.decodeIfPresent(VersionRange.self, forKey: .appVersion),
            lastSeen: try container.decodeIfPresent(TimeRange.self, forKey: .lastSeen))
    }
}

extension DeviceFilter.VersionRange: Decodable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case from, until }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init(
            from: try container.decodeIfPresent(AppVersion.self, forKey: .from),
            until: try container.decodeIfPresent(AppVersion.self, forKey: .until))
    }
}

extension DeviceFilter.TimeRange: Decodable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case after, before }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        self.init(
            after: try container.decodeIfPresent(Timestamp.self, forKey: .after),
            before: try container.decodeIfPresent(Timestamp.self, forKey: .before))
    }
}
