package import PushProtocol
import ServiceLifecycle

/// Starts and stops the consumption of an app's queues as its lanes shut and open: a shut lane keeps its queue.
///
/// When a pause is over the queues are consumed again, and the first push probes. Runs until graceful shutdown.
package struct LaneSupervisor: Service {
    package typealias Switch = @Sendable (WorkQueue) async -> Void

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
                        guard lanes.isShut(key.app) else { continue }
                        if paused.insert(key.app).inserted {
                            for queue in WorkQueue.pushes(provider, of: [key.app]) { await pause(queue) }
                        }
                        timers.addTask {
                            // Cancelled only when the process stops; then nobody listens any more.
                            try? await clock.sleep(duration)
                            lanes.send(.pauseOver(key.app))
                        }
                    case .closed(let key): await take(up: key.app, &paused)
                    case .pauseOver(let app): await take(up: app, &paused)
                    }
                }
                timers.cancelAll()
            }
        }
    }

    private func take(up app: AppID, _ paused: inout Set<AppID>) async {
        guard paused.remove(app) != nil else { return }
        for queue in WorkQueue.pushes(provider, of: [app]) { await resume(queue) }
    }
}
