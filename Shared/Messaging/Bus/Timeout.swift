/// Limits the wait for an operation that ignores cancellation, such as a publish without a confirm.
enum Timeout {
    /// The result of `operation`; `nil` when `deadline` passes or the task is cancelled first. The operation then
    /// continues, and its result is dropped.
    static func result<Result: Sendable>(
        of operation: @escaping @Sendable () async -> Result, within deadline: Duration
    ) async -> Result? {
        let (results, continuation) = AsyncStream<Result>.makeStream(bufferingPolicy: .bufferingOldest(1))
        Task {
            continuation.yield(await operation())
            continuation.finish()
        }
        let timer = Task {
            // Cancelled when the result arrives.
            guard (try? await Task.sleep(for: deadline)) != nil else { return }
            continuation.finish()
        }
        defer { timer.cancel() }
        for await result in results { return result }
        return nil
    }
}
