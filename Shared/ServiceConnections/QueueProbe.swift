package import AMQP

/// Reads queue lengths from the broker over its own connection. Opens the connection on first use and after each error.
package actor QueueProbe {
    private let configuration: AMQPConfiguration
    private var connecting: Task<AMQPAdministrator, any Error>?

    package init(_ configuration: AMQPConfiguration) { self.configuration = configuration }

    /// The number of ready messages and of consumers of `queue`; `nil` if the broker has no such queue.
    package func status(of queue: String) async throws -> (messages: Int, consumers: Int)? {
        let task = connection()
        do {
            return try await task.value.queueStatus(queue)
        } catch {
            if connecting == task { connecting = nil }
            await (try? task.value)?.close()
            throw error
        }
    }

    /// Closes the connection. The next query opens a new one.
    package func close() async {
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
