internal import Synchronization

/// A connection checked out of the pool.
struct PoolLease: Sendable {
    let id: PoolStateMachine.ConnectionID
    let connection: PostgresConnection

    /// Runs `work` on the connection's thread. Cancelling the task ends waits for the server.
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
            state.waiterCount += 1
            return state.waiterCount
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in enqueue(id, continuation) }
        } onCancel: {
            apply { $0.cancel(id) }
        }
        return try result.get()
    }

    /// Returns a connection to the pool; `result` decides whether it is reused. `nil` means that it was already closed.
    func checkin<R>(_ lease: PoolLease, after result: Result<R?, PostgresError>) {
        let isUsable =
            switch result {
            case .success(let result): result != nil
            case .failure(let error): !error.closesConnection && error.code != .cancelled
            }
        apply { $0.checkin(lease.id, isUsable: isUsable) }
    }

    private func enqueue(_ id: PoolStateMachine.WaiterID, _ continuation: Waiter) {
        // `isCancelled` is set before the handler runs: either it is seen here, or the handler finds the waiter.
        apply { machine, waiters in
            waiters[id] = continuation
            let actions = machine.checkout(id, now: .now)
            return Task.isCancelled ? actions + machine.cancel(id) : actions
        }
    }
}
