import AMQP

/// Reads queue lengths from the broker over its own connection. Opens the connection on first use and after each error.
actor QueueDepthProbe {
    private let configuration: AMQPConfiguration
    private var connecting: Task<AMQPAdministrator, any Error>?

    init(_ configuration: AMQPConfiguration) { self.configuration = configuration }

    /// The number of ready messages in `queue`; `nil` if the broker has no such queue.
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

    /// Closes the connection. The next query opens a new one.
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
