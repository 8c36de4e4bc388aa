package import PushProtocol

/// Notices when so many answers of a lane are held against tokens that the lane itself is the likelier culprit: a wrong
/// host, a wrong topic, another project's account (`push-protocols` C.4). Pure; its owner tells the time.
///
/// Within a minute, people are counted once each, and doubts as a share of all answers. Only doubts about established
/// registrations count (``Push/Target/owner``): neither one user nor a burst of new registrations makes a storm, whatever
/// tokens they invent (decision 85). Suspects that were reported before the storm was noticed are not to be believed either: that
/// it is on is told to whoever weighs them (``news(now:)``).
package struct SuspicionMonitor: Sendable {
    /// What is counted (`push-protocols` C.4.3). Other doubts may be a payload's fault.
    static let reasons: Set<String> = ["BadDeviceToken", "DeviceTokenNotForTopic", "SENDER_ID_MISMATCH"]
    /// More than this share of the answers …
    static let share = 0.05
    /// … doubts tokens, and those of at least so many people.
    static let minimum = 20
    static let window = Duration.seconds(60)
    /// As long as a storm lasts it is told again so often, should the word have been lost with a connection.
    static let pace = Duration.seconds(10)
    private static let slice = Duration.seconds(5)

    /// A few seconds' answers.
    private struct Slice {
        var start: Duration
        var answers = 0
        var doubts = 0
    }

    private var slices: [Slice] = []
    /// When a token of each person was last suspected.
    private var people: [OwnerKey: Duration] = [:]
    /// The beginning of the window that the storm was noticed in, until a probe shows that tokens are taken again.
    private var stormSince: Duration?
    /// What was last noticed of a storm, this one or the one before.
    private var noticed: ClosedRange<Duration>?
    private var isNews = false
    private var toldAt: Duration?

    package var isStorm: Bool { stormSince != nil }

    package init() {}

    /// Takes the answers of one round and returns the storm's name when there is one; no token is then held against its
    /// owner.
    ///
    /// - Parameters:
    ///   - answers: how many targets the provider spoke about.
    ///   - doubts: the owner of each target that it doubts; `nil` where the registration is not established.
    ///   - now: on any monotonic clock.
    package mutating func note(answers: Int, doubts: [OwnerKey?], isProbe: Bool, now: Duration) -> String? {
        if let since = stormSince {
            let isOver = isProbe && answers > 0 && doubts.isEmpty
            guard isOver || !doubts.isEmpty else { return nil }
            notice(since...now)
            if isOver { stormSince = nil }
            return isOver ? nil : Self.name
        }
        guard answers > 0 else { return nil }
        let doubted = doubts.compactMap { $0 }
        count(answers, doubts: doubted.count, now)
        for owner in doubted { people[owner] = now }
        guard !doubted.isEmpty, people.count >= Self.minimum else { return nil }
        people = people.filter { now - $0.value < Self.window }
        let (answers, doubts) = slices.reduce((0, 0)) { ($0.0 + $1.answers, $0.1 + $1.doubts) }
        guard people.count >= Self.minimum, Double(doubts) > Self.share * Double(answers) else { return nil }
        (slices, people) = ([], [:])
        stormSince = now - Self.window
        notice(now - Self.window...now)
        return Self.name
    }

    /// What is to be told now of a storm: that tokens were refused for the lane's sake in this time. Each new word is
    /// given once, and the last again every ``pace`` as long as the storm lasts.
    package mutating func news(now: Duration) -> ClosedRange<Duration>? {
        if let since = stormSince, let toldAt, now - toldAt >= Self.pace { notice(since...now) }
        guard isNews else { return nil }
        isNews = false
        toldAt = now
        return noticed
    }

    private mutating func notice(_ time: ClosedRange<Duration>) {
        // A word that nobody has been given yet is not lost for the next.
        let since = isNews ? noticed?.lowerBound : nil
        noticed = min(since ?? time.lowerBound, time.lowerBound)...time.upperBound
        isNews = true
    }

    private mutating func count(_ answers: Int, doubts: Int, _ now: Duration) {
        if slices.last.map({ now - $0.start >= Self.slice }) ?? true {
            slices.removeAll { now - $0.start >= Self.window }
            slices.append(Slice(start: now))
        }
        slices[slices.count - 1].answers += answers
        slices[slices.count - 1].doubts += doubts
    }

    private static let name = "token-storm: too many tokens of this lane are refused at once"
}
