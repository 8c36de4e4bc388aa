package import PushProtocol

/// The app versions whose FIDs are not used because providers refuse too many of them (decision 86).
package struct FIDPreference: Hashable, Sendable {
    /// One version of an app.
    package struct Cohort: Hashable, Sendable {
        package var app: AppID
        /// Empty for registrations without a version.
        package var version: String
    }

    package var halted: Set<Cohort>

    package init(halted: Set<Cohort> = []) { self.halted = halted }

    /// Whether to use a registration token instead of `fid`, if there is one.
    func isSuspended(_ fid: Registration) -> Bool {
        fid.isSuspected
            || !halted.isEmpty && halted.contains(Cohort(app: fid.app, version: fid.appVersion ?? ""))
    }
}

/// When to stop using a cohort's FIDs.
enum FIDCohortRule {
    /// Minimum users whose FIDs were refused within ``window`` while a token was accepted.
    static let minimum = 5
    /// A cohort is halted if more than one in so many FIDs were refused.
    static let oneIn = 20
    /// How long a refusal counts, and how long a halt lasts.
    static let window = Duration.seconds(86_400)
    /// How long a registration token stays as a fallback beside a FID.
    static let fallback = Duration.seconds(30 * 86_400)

    /// The cohort's number of FIDs from which on `suspected` refusals do not halt it.
    static func mostCounted(_ suspected: Int) -> Int { suspected * oneIn }

    /// - Parameter known: the cohort's number of FIDs, counted up to ``mostCounted(_:)``.
    static func isHalted(suspected: Int, known: Int) -> Bool {
        suspected >= minimum && known < mostCounted(suspected)
    }
}

extension DeviceToken {
    /// Whether the text is a registration token rather than a Firebase installation ID. A FID has 22 characters of
    /// base64url; a token has a colon and is much longer.
    var isRegistrationToken: Bool { secret.utf8.count > 64 || secret.utf8.contains(UInt8(ascii: ":")) }
}
