import AMQP
import Dispatch
import Foundation
import Postgres

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

/// Runs `body` until SIGINT or SIGTERM, which end it without an error.
func untilInterrupted(_ body: @escaping @Sendable () async throws -> Void) async throws {
    do {
        try await withSignalCancellation(body)
    } catch is CancellationError {
        return
    } catch let error as PostgresError where error.code == .cancelled || error.code == .poolClosed {
        return
    } catch let error as AMQPError where error.code == .cancelled {
        return
    }
}
