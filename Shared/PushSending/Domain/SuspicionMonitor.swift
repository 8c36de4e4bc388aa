package import FoundationEssentials

/// Notices when so many answers of a lane are held against tokens that the lane itself is the likelier culprit: a wrong
/// host, a wrong topic, another project's account (`push-protocols` C.4). Pure; its owner tells the time.
///
/// Suspects are counted once each, within a minute, against all answers of that minute.
package struct SuspicionMonitor: Sendable {
    /// What is counted (`push-protocols` C.4.3). Other doubts may be a payload's fault.
    static let reasons: Set<String> = ["BadDeviceToken", "DeviceTokenNotForTopic", "SENDER_ID_MISMATCH"]
    /// More than this share of the answers …
    static let share = 0.05
    /// … and at least so many different targets.
    static let minimum = 20
    static let window = Duration.seconds(60)
    private static let slice = Duration.seconds(5)

    /// A few seconds' answers.
    private struct Slice {
        var start: Duration
        var answers = 0
    }

    private var slices: [Slice] = []
    /// When each suspect was last suspected.
    private var suspects: [UUID: Duration] = [:]
    /// From the moment it was noticed until a probe shows that tokens are taken again.
    package private(set) var isStorm = false

    package init() {}

    /// Takes the answers of one round at `now`, on any monotonic clock: how many targets the provider spoke about, and
    /// which of them it doubts. Returns the storm's name when there is one, and nobody's token shall be held against it.
    package mutating func note(answers: Int, suspects doubted: [UUID], isProbe: Bool, now: Duration) -> String? {
        if isStorm {
            if isProbe, answers > 0, doubted.isEmpty {
                isStorm = false
                return nil
            }
            return doubted.isEmpty ? nil : Self.name
        }
        guard answers > 0 else { return nil }
        count(answers, now)
        for suspect in doubted { suspects[suspect] = now }
        guard !doubted.isEmpty, suspects.count >= Self.minimum else { return nil }
        suspects = suspects.filter { now - $0.value < Self.window }
        let total = slices.reduce(0) { $0 + $1.answers }
        guard suspects.count >= Self.minimum, Double(suspects.count) > Self.share * Double(total) else { return nil }
        self = SuspicionMonitor()
        isStorm = true
        return Self.name
    }

    private mutating func count(_ answers: Int, _ now: Duration) {
        if let last = slices.last, now - last.start < Self.slice {
            slices[slices.count - 1].answers += answers
        } else {
            slices.removeAll { now - $0.start >= Self.window }
            slices.append(Slice(start: now, answers: answers))
        }
    }

    private static let name = "token-storm: too many tokens of this lane are refused at once"
}
