import Logging
import ServiceLifecycle

/// The last service of the group, and so the first to hear of a shutdown: makes the process not ready before anything
/// it consists of stops.
struct DrainAnnouncer: Service {
    let readiness: Readiness
    let logger: Logger

    func run() async throws {
        // Returns when told to shut down; throws only when cancelled, which says the same more urgently.
        try? await gracefulShutdown()
        readiness.drain()
        logger.info("Draining")
    }
}
