package import Logging
package import Messaging
package import PushProtocol

extension Stage {
    /// Creates a stage with one policy for all queues.
    package convenience init(
        service: String, queues: [WorkQueue], policy: StagePolicy = .init(), bus: any MessageBus,
        handler: some StageHandler, census: CensusLog? = nil, logger: Logger
    ) {
        self.init(
            service: service, queues: queues, policy: { _ in policy }, bus: bus, handler: handler, census: census,
            logger: logger)
    }
}
