import Metrics
import PushSending
import ServiceLifecycle

/// Closes idle connections to push services, and records the number of push services. Closes all connections at shutdown,
/// after the stage has drained.
struct IdleOrigins: Service {
    static let interval = Duration.seconds(10)

    let pools: OriginPools
    var clock = SenderClock.system

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // Only the shutdown cancels the sleep.
            repeat {
                for pool in pools.all { await pool.closeIdle() }
                record()
            } while (try? await clock.sleep(Self.interval)) != nil
        }
        for pool in pools.all { await pool.shutdown() }
    }

    private func record() {
        let counts = ["open": pools.all.map(\.count).reduce(0, +), "paused": pools.all.map(\.pausedCount).reduce(0, +)]
        for (state, count) in counts {
            Gauge(label: "heliograph_webpush_origins", dimensions: [("state", state)]).record(count)
        }
    }
}
