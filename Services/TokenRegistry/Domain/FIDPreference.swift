import PushProtocol

/// The versions of apps whose FIDs are not used, since providers refuse too many of them (decision 86).
struct FIDPreference: Hashable, Sendable {
    /// One version of an app.
    struct Cohort: Hashable, Sendable {
        var app: AppID
        /// Empty for registrations without a version.
        var version: String
    }

    var halted: Set<Cohort> = []

    /// Whether a registration token is to be used in place of `fid`, where there is one.
    func isSuspended(_ fid: Registration) -> Bool {
        fid.isSuspected
            || !halted.isEmpty && halted.contains(Cohort(app: fid.app, version: fid.appVersion ?? ""))
    }
}

/// When a cohort's FIDs are not used any more.
enum FIDCohortRule {
    /// At least so many people's FIDs were refused within ``window`` while a token of theirs was taken …
    static let minimum = 5
    /// … and more than one FID in so many of the cohort.
    static let oneIn = 20
    /// How long a refusal counts, and a halt lasts.
    static let window = Duration.seconds(86_400)
    /// How long a registration token stays as a fallback beside a FID.
    static let fallback = Duration.seconds(30 * 86_400)

    /// How many FIDs of a cohort are too many for `suspected` to halt it.
    static func mostCounted(_ suspected: Int) -> Int { suspected * oneIn }

    /// - Parameter known: the FIDs of the cohort, counted up to ``mostCounted(_:)``.
    static func isHalted(suspected: Int, known: Int) -> Bool {
        suspected >= minimum && known < mostCounted(suspected)
    }
}

extension DeviceToken {
    /// Whether this text is no Firebase installation ID, which has 22 characters of base64url. A registration token has a
    /// colon, and is far longer.
    var isRegistrationToken: Bool { secret.utf8.count > 64 || secret.utf8.contains(UInt8(ascii: ":")) }
}
