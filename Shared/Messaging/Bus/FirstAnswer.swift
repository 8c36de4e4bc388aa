/// Waits for an operation that ignores cancellation, such as a publish whose confirm never comes.
enum FirstAnswer {
    /// The result of `operation`, or `nil` when `deadline` passes or the task is cancelled first. The operation runs on in
    /// that case, and its result is dropped.
    static func of<Result: Sendable>(
        _ operation: @escaping @Sendable () async -> Result, within deadline: Duration
    ) async -> Result? {
        let (results, continuation) = AsyncStream<Result>.makeStream(bufferingPolicy: .bufferingOldest(1))
        Task {
            continuation.yield(await operation())
            continuation.finish()
        }
        let timer = Task {
            // Cancelled once there is a result.
            guard (try? await Task.sleep(for: deadline)) != nil else { return }
            continuation.finish()
        }
        defer { timer.cancel() }
        for await result in results { return result }
        return nil
    }
}
