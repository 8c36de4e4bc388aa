import Logging
import ServiceLifecycle

/// Makes the process unready at shutdown. The last service of the group and therefore the first to shut down, before
/// any other service stops.
struct DrainAnnouncer: Service {
    let readiness: Readiness
    let logger: Logger

    func run() async throws {
        // Throws only when cancelled, which means shutdown too.
        try? await gracefulShutdown()
        readiness.drain()
        logger.info("Draining")
    }
}
