package import PushProtocol
package import ServiceConnections
package import ServiceKit
package import ServiceLifecycle

/// A stage of a sender beside that of its pushes.
package struct SenderStage {
    package var queues: [WorkQueue]
    package var exchanges: [ExchangeName]
    package var assemble: (ServiceContext, BusAssembly) throws(ConfigurationError) -> any Service

    package init(
        queues: [WorkQueue], publishingTo exchanges: [ExchangeName],
        assemble: @escaping (ServiceContext, BusAssembly) throws(ConfigurationError) -> any Service
    ) {
        self.queues = queues
        self.exchanges = exchanges
        self.assemble = assemble
    }
}
