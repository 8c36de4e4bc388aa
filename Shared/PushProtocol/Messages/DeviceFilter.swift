/// Which devices of an audience's members: those for which all that is asked here is known and fits. What is absent is not
/// asked; an empty list fits nothing; what nobody knows is refused.
package struct DeviceFilter: Encodable, Hashable, Sendable {
    package var platform: [Platform]?
    /// Ranges of BCP 47 (RFC 4647 §3.3.1): `de` takes `de` and `de-CH`, not `den`. Case does not matter.
    package var locale: [String]?
    /// IANA names, such as `Europe/Zurich`.
    package var timeZone: [String]?
    package var appVersion: Versions?
    /// When the device last registered, which apps do at each launch.
    package var lastSeen: Moments?

    package init(
        platform: [Platform]? = nil, locale: [String]? = nil, timeZone: [String]? = nil, appVersion: Versions? = nil,
        lastSeen: Moments? = nil
    ) {
        self.platform = platform
        self.locale = locale
        self.timeZone = timeZone
        self.appVersion = appVersion
        self.lastSeen = lastSeen
    }

    /// What a device is, as far as its registration tells.
    package enum Platform: String, Codable, Hashable, Sendable, CaseIterable {
        /// Registered with APNs, or with FCM as an app that says it runs on iOS.
        case apple
        /// Registered with FCM as another app.
        case android
        /// Registered with FCM by a browser.
        case web
    }

    /// From `from`, itself included, until `until`, itself excluded; absent: without that bound.
    package struct Versions: Encodable, Hashable, Sendable {
        package var from: AppVersion?
        package var until: AppVersion?

        package init(from: AppVersion? = nil, until: AppVersion? = nil) {
            self.from = from
            self.until = until
        }
    }

    /// From `after`, itself included, until `before`, itself excluded; absent: without that bound.
    package struct Moments: Encodable, Hashable, Sendable {
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
        let container = try decoder.container(exactly: CodingKeys.self)
        self.init(
            platform: try container.decodeIfPresent([Platform].self, forKey: .platform),
            locale: try container.decodeIfPresent([String].self, forKey: .locale),
            timeZone: try container.decodeIfPresent([String].self, forKey: .timeZone),
            appVersion: try container.decodeIfPresent(Versions.self, forKey: .appVersion),
            lastSeen: try container.decodeIfPresent(Moments.self, forKey: .lastSeen))
    }
}

extension DeviceFilter.Versions: Decodable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case from, until }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(exactly: CodingKeys.self)
        self.init(
            from: try container.decodeIfPresent(AppVersion.self, forKey: .from),
            until: try container.decodeIfPresent(AppVersion.self, forKey: .until))
    }
}

extension DeviceFilter.Moments: Decodable {
    private enum CodingKeys: String, CodingKey, CaseIterable { case after, before }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(exactly: CodingKeys.self)
        self.init(
            after: try container.decodeIfPresent(Timestamp.self, forKey: .after),
            before: try container.decodeIfPresent(Timestamp.self, forKey: .before))
    }
}
