package import PushProtocol
import Synchronization

/// What work that nobody waits for owes to people who wait. While something interactive comes through this process, each
/// step of such work is small, and whoever made it rests some times as long as it took: broker, database and cores are then
/// free for most of the time. When nothing comes, the work has everything.
package final class Courtesy: Sendable {
    /// For how long something interactive is taken as a sign that more will come.
    package static let memory = Duration.seconds(1)
    package static let longestRest = Duration.seconds(1)

    private let factor: Int
    private let lastHeard = Mutex<ContinuousClock.Instant?>(nil)
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter factor: How many times as long as a step took its maker rests.
    package init(resting factor: Int = 3, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.factor = factor
        self.now = now
    }

    /// Something came through this process.
    package func heard(of lane: Lane) {
        switch lane {
        case .interactive: lastHeard.withLock { $0 = now() }
        case .bulk: break
        }
    }

    /// How much the next step may do: `most`, or `few` as long as people wait.
    package func step(of most: Int, orOnly few: Int) -> Int { isOwed ? few : most }

    /// How long to do nothing after a step that took `work`.
    package func rest(after work: Duration) -> Duration { isOwed ? min(work * factor, Self.longestRest) : .zero }

    private var isOwed: Bool {
        guard let lastHeard = lastHeard.withLock({ $0 }) else { return false }
        return now() - lastHeard < Self.memory
    }
}
