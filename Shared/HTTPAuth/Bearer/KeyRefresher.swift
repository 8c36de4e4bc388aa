import Metrics
import ServiceLifecycle

/// Refreshes the bearer keys of all sources when they are old, and retries failed sources. Runs until graceful
/// shutdown.
package struct KeyRefresher: Service {
    private let verifiers: [BearerVerifier]

    /// - Parameter verifiers: their key caches are refreshed, also those of apps that are added later.
    package init(_ verifiers: BearerVerifier...) { self.verifiers = verifiers }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat { await refresh() } while (try? await Task.sleep(for: KeyCache.pause)) != nil
        }
    }

    func refresh() async {
        let keyCaches = verifiers.flatMap(\.keyCaches)
        await withTaskGroup(of: Void.self) { group in
            for keyCache in keyCaches { group.addTask { await keyCache.refreshIfDue() } }
        }
        var away = 0
        for keyCache in keyCaches where await keyCache.lastError != nil { away += 1 }
        Gauge(label: "heliograph_http_bearer_sources_away").record(away)
    }
}
