package import PushProtocol
import ServiceLifecycle

/// Starts and stops the consumption of an app's queues as its lanes shut and open: a shut lane keeps its queue.
///
/// When a pause is over the queues are consumed again, and the first push probes; where none comes, the lane is probed
/// without one. Runs until graceful shutdown.
package struct LaneSupervisor: Service {
    package typealias Switch = @Sendable (WorkQueue) async -> Void
    /// How long a lane whose pause is over waits for a push that probes.
    package static var grace: Duration { .seconds(5) }

    private let lanes: PushLanes
    private let provider: Provider
    private let clock: SenderClock
    private let pause: Switch
    private let resume: Switch

    package init(
        lanes: PushLanes, provider: Provider, clock: SenderClock = .system, pause: @escaping Switch,
        resume: @escaping Switch
    ) {
        self.lanes = lanes
        self.provider = provider
        self.clock = clock
        self.pause = pause
        self.resume = resume
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { timers in
                var paused: Set<AppID> = []
                for await signal in lanes.signals {
                    switch signal {
                    case .opened(let key, let duration):
                        let shutsApp = lanes.isShut(key.app)
                        if shutsApp, paused.insert(key.app).inserted {
                            for queue in WorkQueue.pushes(provider, of: [key.app]) { await pause(queue) }
                        }
                        timers.addTask {
                            guard await passed(duration) else { return }
                            if shutsApp { lanes.send(.pauseOver(key.app)) }
                            await probe(key, every: duration)
                        }
                    case .closed(let key): await take(up: key.app, &paused)
                    case .pauseOver(let app): await take(up: app, &paused)
                    case .mended(let key):
                        await take(up: key.app, &paused)
                        timers.addTask { await probe(key, every: Self.grace) }
                    }
                }
                timers.cancelAll()
            }
        }
    }

    /// Gives pushes the time to probe, and probes in their place. What comes of that is a signal, but for nothing at all.
    private func probe(_ key: LaneKey, every pause: Duration) async {
        guard await passed(Self.grace) else { return }
        while await lanes.probe(key) { guard await passed(pause) else { return } }
    }

    /// Whether `duration` has passed; no, when the process stops: then nobody listens any more.
    private func passed(_ duration: Duration) async -> Bool {
        do { try await clock.sleep(duration) } catch { return false }
        return true
    }

    private func take(up app: AppID, _ paused: inout Set<AppID>) async {
        guard paused.remove(app) != nil else { return }
        for queue in WorkQueue.pushes(provider, of: [app]) { await resume(queue) }
    }
}
