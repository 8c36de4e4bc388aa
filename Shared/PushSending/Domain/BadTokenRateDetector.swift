package import PushProtocol

/// Detects when so many tokens of a route are rejected that the route is the likely cause: a wrong host, a wrong topic,
/// another project's service account. Pure: the caller passes the time.
///
/// A spike needs at least ``minimumUsers`` users and more than ``share`` of all answers within ``window``. Counts only
/// established registrations (``Push/Target/owner``). So neither one user nor a burst of new registrations can cause a
/// spike with invented tokens (decision 85). Feedback ignores rejections in the window of ``spikeToReport(now:)``.
package struct BadTokenRateDetector: Sendable {
    /// The reasons that count. Other rejections of a suspect token may be about the payload.
    static let reasons: Set<String> = ["BadDeviceToken", "DeviceTokenNotForTopic", "SENDER_ID_MISMATCH"]
    /// The share of answers that suspect tokens have to exceed.
    static let share = 0.05
    static let minimumUsers = 20
    static let window = Duration.seconds(60)
    /// How often a lasting spike is reported again, in case a report was lost with its connection.
    static let reportInterval = Duration.seconds(10)
    private static let slice = Duration.seconds(5)

    /// The answers of ``slice``.
    private struct Slice {
        var start: Duration
        var answers = 0
        var suspects = 0
    }

    private var slices: [Slice] = []
    /// When a token of each user was last suspect.
    private var users: [UserHash: Duration] = [:]
    /// The start of the window in which the spike was detected; `nil` again after a successful probe.
    private var spikeSince: Duration?
    /// The time of the current spike, or of the last one.
    private var lastSpike: ClosedRange<Duration>?
    private var isUnreported = false
    private var reportedAt: Duration?

    package var isSpike: Bool { spikeSince != nil }

    package init() {}

    /// Records the answers of one attempt. Returns the reason to open the circuit breaker during a spike; then none of
    /// the tokens may be blamed.
    ///
    /// - Parameters:
    ///   - answers: the number of targets with an answer from the provider.
    ///   - suspects: the owner of each suspect token; `nil` where the registration is not established.
    ///   - now: on any monotonic clock.
    package mutating func record(answers: Int, suspects: [UserHash?], isProbe: Bool, now: Duration) -> String? {
        if let since = spikeSince {
            let isOver = isProbe && answers > 0 && suspects.isEmpty
            guard isOver || !suspects.isEmpty else { return nil }
            setLastSpike(since...now)
            if isOver { spikeSince = nil }
            return isOver ? nil : Self.reason
        }
        guard answers > 0 else { return nil }
        let suspected = suspects.compactMap { $0 }
        count(answers, suspects: suspected.count, now)
        for owner in suspected { users[owner] = now }
        guard !suspected.isEmpty, users.count >= Self.minimumUsers else { return nil }
        users = users.filter { now - $0.value < Self.window }
        let (answers, suspects) = slices.reduce((0, 0)) { ($0.0 + $1.answers, $0.1 + $1.suspects) }
        guard users.count >= Self.minimumUsers, Double(suspects) > Self.share * Double(answers) else { return nil }
        (slices, users) = ([], [:])
        spikeSince = now - Self.window
        setLastSpike(now - Self.window...now)
        return Self.reason
    }

    /// The time of a spike to report now: after each change, and every ``reportInterval`` while the spike lasts.
    package mutating func spikeToReport(now: Duration) -> ClosedRange<Duration>? {
        if let since = spikeSince, let reportedAt, now - reportedAt >= Self.reportInterval { setLastSpike(since...now) }
        guard isUnreported else { return nil }
        isUnreported = false
        reportedAt = now
        return lastSpike
    }

    private mutating func setLastSpike(_ time: ClosedRange<Duration>) {
        // Extends a spike that is not reported yet.
        let since = isUnreported ? lastSpike?.lowerBound : nil
        lastSpike = min(since ?? time.lowerBound, time.lowerBound)...time.upperBound
        isUnreported = true
    }

    private mutating func count(_ answers: Int, suspects: Int, _ now: Duration) {
        if slices.last.map({ now - $0.start >= Self.slice }) ?? true {
            slices.removeAll { now - $0.start >= Self.window }
            slices.append(Slice(start: now))
        }
        slices[slices.count - 1].answers += answers
        slices[slices.count - 1].suspects += suspects
    }

    private static let reason = "bad-token-spike: the provider rejects too many tokens of this route at once"
}
