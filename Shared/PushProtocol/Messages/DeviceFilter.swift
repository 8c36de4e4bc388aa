/// Which devices of an audience's members: those for which all that is asked here is known and fits. What is absent is not
/// asked; an empty list fits nothing.
package struct DeviceFilter: Codable, Hashable, Sendable {
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
        /// Registered with APNs.
        case apple
        /// Registered with FCM as an app.
        case android
        /// Registered with FCM by a browser.
        case web
    }

    /// From `from`, itself included, until `until`, itself excluded; absent: without that bound.
    package struct Versions: Codable, Hashable, Sendable {
        package var from: AppVersion?
        package var until: AppVersion?

        package init(from: AppVersion? = nil, until: AppVersion? = nil) {
            self.from = from
            self.until = until
        }
    }

    /// From `after`, itself included, until `before`, itself excluded; absent: without that bound.
    package struct Moments: Codable, Hashable, Sendable {
        package var after: Timestamp?
        package var before: Timestamp?

        package init(after: Timestamp? = nil, before: Timestamp? = nil) {
            self.after = after
            self.before = before
        }
    }
}
