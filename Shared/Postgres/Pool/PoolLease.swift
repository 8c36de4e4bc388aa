internal import Synchronization

/// A connection that is ours until it is checked in.
struct PoolLease: Sendable {
    let id: PoolMachine.ConnectionID
    let connection: PostgresConnection

    /// Runs `work` on the connection's thread. The cancellation of the task ends its waiting for the server.
    func attempt<R: Sendable>(
        _ work: @Sendable (isolated PostgresConnection) throws(PostgresError) -> R
    ) async -> Result<R, PostgresError> {
        await withTaskCancellationHandler {
            await connection.attempt(work)
        } onCancel: {
            connection.interrupt()
        }
    }
}

extension PostgresPool {
    func checkout() async throws(PostgresError) -> PoolLease {
        let id = state.withLock { state in
            state.waitersMade += 1
            return state.waitersMade
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in enqueue(id, continuation) }
        } onCancel: {
            apply { $0.cancel(id) }
        }
        return try result.get()
    }

    /// Returns a connection; `answer` tells whether it can be used again. `nil` is that of a connection found closed.
    func checkin<R>(_ lease: PoolLease, after answer: Result<R?, PostgresError>) {
        let isUsable =
            switch answer {
            case .success(let result): result != nil
            case .failure(let error): !error.closesConnection && error.code != .cancelled
            }
        apply { $0.checkin(lease.id, isUsable: isUsable) }
    }

    private func enqueue(_ id: PoolMachine.WaiterID, _ continuation: Waiter) {
        // The flag is set before the cancellation handler runs. So either it is seen here, or the handler finds the
        // waiter in its place.
        apply { machine, waiters in
            waiters[id] = continuation
            let actions = machine.checkout(id, now: .now)
            return Task.isCancelled ? actions + machine.cancel(id) : actions
        }
    }
}
