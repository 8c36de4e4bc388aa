import PushProtocol
import Synchronization

/// What campaigns owe to people who wait for something. While interactive notifications come through this process, a step
/// of a campaign is small, and whoever made it rests three times as long as it took: broker, database and cores are then
/// free for most of the time. When none come, campaigns have everything.
final class Courtesy: Sendable {
    /// For how long an interactive notification is taken as a sign that more will come.
    static let memory = Duration.seconds(1)
    /// About how many devices a step tells meanwhile.
    static let smallStep = 500
    static let longestRest = Duration.seconds(1)

    private let lastHeard = Mutex<ContinuousClock.Instant?>(nil)
    private let now: @Sendable () -> ContinuousClock.Instant

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.now = now
    }

    /// A notification came through this process.
    func heard(of lane: Lane) {
        switch lane {
        case .interactive: lastHeard.withLock { $0 = now() }
        case .bulk: break
        }
    }

    /// About how many devices the next step may tell.
    var stepSize: Int { isOwed ? Self.smallStep : CampaignSteps.usualSize }

    /// How long to do nothing after a step that took `work`.
    func rest(after work: Duration) -> Duration { isOwed ? min(work * 3, Self.longestRest) : .zero }

    private var isOwed: Bool {
        guard let lastHeard = lastHeard.withLock({ $0 }) else { return false }
        return now() - lastHeard < Self.memory
    }
}
