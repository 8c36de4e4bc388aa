import Dispatch
import Foundation

/// Cancels `body` on SIGINT and SIGTERM.
func withSignalCancellation<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) async throws
    -> Result
{
    let task = Task { try await body() }
    let sources = [SIGINT, SIGTERM].map { number in
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler { task.cancel() }
        source.resume()
        return source
    }
    defer {
        for source in sources { source.cancel() }
        for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
    }
    return try await task.value
}
