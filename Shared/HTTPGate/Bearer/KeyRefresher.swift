import Metrics
import ServiceLifecycle

/// Reads keys of bearer tokens anew when they are old, and tries again where they could not be had. Runs until graceful
/// shutdown.
package struct KeyRefresher: Service {
    private let rings: [KeyRing]

    package init(_ rings: [KeyRing]) { self.rings = rings }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat { await refresh() } while (try? await Task.sleep(for: KeyRing.pause)) != nil
        }
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_http_bearer_sources_away` | gauge | | files and URLs whose keys could not be had when last tried |
    func refresh() async {
        await withTaskGroup(of: Void.self) { group in
            for ring in rings { group.addTask { await ring.refreshIfDue() } }
        }
        var away = 0
        for ring in rings where await ring.trouble != nil { away += 1 }
        Gauge(label: "heliograph_http_bearer_sources_away").record(away)
    }
}
