import AMQP

/// Asks the broker how many messages wait in a queue. It has a connection of its own, which it opens at the first question
/// and after every error.
actor QueueDepthProbe {
    private let configuration: AMQPConfiguration
    private var connecting: Task<AMQPAdministrator, any Error>?

    init(_ configuration: AMQPConfiguration) { self.configuration = configuration }

    /// How many messages are ready in `queue`; `nil` when the broker has no such queue.
    func depth(of queue: String) async throws -> Int? {
        let task = connection()
        do {
            return try await task.value.queueStatus(queue)?.messages
        } catch {
            if connecting == task { connecting = nil }
            await (try? task.value)?.close()
            throw error
        }
    }

    /// Closes the connection. A later question opens a new one.
    func close() async {
        let task = connecting
        connecting = nil
        await (try? task?.value)?.close()
    }

    private func connection() -> Task<AMQPAdministrator, any Error> {
        if let connecting { return connecting }
        let configuration = configuration
        let task = Task { try await AMQPAdministrator.open(configuration) }
        connecting = task
        return task
    }
}
