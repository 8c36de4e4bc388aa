package import PushProtocol
import Providers
import ServiceLifecycle

/// Stops consuming an app's queues while all its routes are paused, so that their messages stay in the queues.
///
/// Consumes again after the pause, so that the first push probes the route. Without a push, sends a probe of its own.
/// Runs until graceful shutdown.
package struct RouteSupervisor: Service {
    package typealias QueueAction = @Sendable (WorkQueue) async -> Void
    /// How long to wait for a push as a probe, after the pause.
    package static var probeGracePeriod: Duration { .seconds(5) }

    private let routes: ProviderRoutes
    private let provider: Provider
    private let clock: SenderClock
    private let pause: QueueAction
    private let resume: QueueAction

    package init(
        routes: ProviderRoutes, provider: Provider, clock: SenderClock = .system, pause: @escaping QueueAction,
        resume: @escaping QueueAction
    ) {
        self.routes = routes
        self.provider = provider
        self.clock = clock
        self.pause = pause
        self.resume = resume
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { timers in
                var paused: Set<AppID> = []
                for await event in routes.events {
                    switch event {
                    case .opened(let route, let duration):
                        let pausesApp = routes.isBlocked(route.app)
                        if pausesApp, paused.insert(route.app).inserted {
                            for queue in WorkQueue.pushes(provider, of: [route.app]) { await pause(queue) }
                        }
                        timers.addTask {
                            guard await passed(duration) else { return }
                            if pausesApp { routes.send(.pauseOver(route.app)) }
                            await probe(route, every: duration)
                        }
                    case .closed(let route): await resumeQueues(of: route.app, &paused)
                    case .pauseOver(let app): await resumeQueues(of: app, &paused)
                    case .credentialChanged(let route):
                        await resumeQueues(of: route.app, &paused)
                        timers.addTask { await probe(route, every: Self.probeGracePeriod) }
                    }
                }
                timers.cancelAll()
            }
        }
    }

    /// Probes the route unless a push does so first. Repeats the probe until it is conclusive.
    private func probe(_ route: ProviderRoute, every pause: Duration) async {
        guard await passed(Self.probeGracePeriod) else { return }
        while await routes.probe(route) { guard await passed(pause) else { return } }
    }

    /// Sleeps. Returns false if the process shuts down.
    private func passed(_ duration: Duration) async -> Bool {
        do { try await clock.sleep(duration) } catch { return false }
        return true
    }

    private func resumeQueues(of app: AppID, _ paused: inout Set<AppID>) async {
        guard paused.remove(app) != nil else { return }
        for queue in WorkQueue.pushes(provider, of: [app]) { await resume(queue) }
    }
}
