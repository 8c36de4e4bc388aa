internal import Logging
internal import Primitives
internal import ServiceLifecycle
internal import Synchronization

extension PostgresPool {
    /// Work that `run()` performs asynchronously.
    enum ConnectionTask: Sendable {
        case open(PoolStateMachine.ConnectionID, PostgresConnection)
        case inspect([PoolLease])
        case close(PostgresConnection)
        case retry(afterFailures: Int)
    }

    /// Runs the pool until graceful shutdown or cancellation. Then refuses checkouts, and returns once all connections
    /// are checked in and closed.
    package func run() async throws {
        apply { $0.start() }
        // An unstructured task: cancellation would end the iteration before all connections are closed.
        let working = Task {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.sweepRegularly() }
                for await item in self.work { group.addTask { await self.perform(item) } }
                group.cancelAll()
            }
        }
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await working.value
            } onGracefulShutdown: {
                self.apply { $0.close() }
            }
        } onCancel: {
            self.apply { $0.close() }
        }
    }

    private func perform(_ item: ConnectionTask) async {
        switch item {
        case .open(let id, let connection): await open(id, connection)
        case .inspect(let leases):
            for lease in leases {
                let isUsable = await lease.connection.isUsable()
                apply { $0.checkin(lease.id, isUsable: isUsable) }
            }
        case .close(let connection): await connection.close()
        case .retry(let failures):
            let delay = Backoff.reconnecting.delay(afterFailures: failures, jitter: .equal, random: randomness())
            // Cancelled only after the pool has finished.
            try? await Task.sleep(for: delay)
            apply { $0.retryDue() }
        }
    }

    private func open(_ id: PoolStateMachine.ConnectionID, _ connection: PostgresConnection) async {
        switch await connection.attempt({ connection throws(PostgresError) in try connection.open() }) {
        case .success:
            if state.withLock({ $0.machine.failures }) > 0 { logger.notice("Database reachable again") }
            apply { $0.opened(id) }
        case .failure(let error):
            let level: Logger.Level = state.withLock { $0.machine.failures } == 0 ? .warning : .debug
            logger.log(level: level, "Database unreachable; retrying", metadata: ["error": "\(error)"])
            state.withLock { state in
                state.lastError = error
                state.connections[id] = nil
            }
            apply { $0.openFailed(id) }
        }
    }

    private func sweepRegularly() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .seconds(2)) } catch { return }
            apply { $0.sweep() }
        }
    }
}

// MARK: - Actions of the state machine

extension PostgresPool {
    func apply(_ event: (inout PoolStateMachine) -> [PoolStateMachine.Action]) {
        apply { machine, _ in event(&machine) }
    }

    /// Passes an event to the state machine and performs its actions. Resumes callers after releasing the lock.
    func apply(
        _ event: (inout PoolStateMachine, inout [PoolStateMachine.WaiterID: Waiter]) -> [PoolStateMachine.Action]
    ) {
        let resumptions = state.withLock { state in
            let actions = event(&state.machine, &state.waiters)
            return actions.compactMap { perform($0, &state) }
        }
        for (waiter, result) in resumptions { waiter.resume(returning: result) }
    }

    private func perform(
        _ action: PoolStateMachine.Action, _ state: inout State
    ) -> (Waiter, Result<PoolLease, PostgresError>)? {
        switch action {
        case .open(let id):
            let connection = PostgresConnection(configuration: configuration, logger: logger)
            state.connections[id] = connection
            workContinuation.yield(.open(id, connection))
        case .lease(let id, let waiter):
            guard let continuation = state.waiters.removeValue(forKey: waiter), let lease = lease(id, state) else {
                return nil
            }
            return (continuation, .success(lease))
        case .fail(let waiter, let refusal):
            guard let continuation = state.waiters.removeValue(forKey: waiter) else { return nil }
            return (continuation, .failure(error(for: refusal, lastError: state.lastError, state.machine.failures)))
        case .inspect(let ids): workContinuation.yield(.inspect(ids.compactMap { lease($0, state) }))
        case .close(let id):
            if let connection = state.connections.removeValue(forKey: id) { workContinuation.yield(.close(connection)) }
        case .wake(let instant): wake(at: instant)
        case .retry(let failures): workContinuation.yield(.retry(afterFailures: failures))
        case .finish: workContinuation.finish()
        }
        return nil
    }

    private func lease(_ id: PoolStateMachine.ConnectionID, _ state: borrowing State) -> PoolLease? {
        state.connections[id].map { PoolLease(id: id, connection: $0) }
    }

    /// Schedules `deadlinePassed` in an unstructured task, so that waits end even if `run()` is not running.
    private func wake(at instant: ContinuousClock.Instant) {
        Task { [weak self] in
            try? await Task.sleep(until: instant, clock: .continuous)
            self?.apply { $0.deadlinePassed(now: .now) }
        }
    }

    private func error(
        for refusal: PoolStateMachine.CheckoutFailure, lastError: PostgresError?, _ failures: Int
    ) -> PostgresError {
        switch refusal {
        case .closed: PostgresError(.poolClosed, operation: "checkout", detail: "the pool is shutting down")
        case .cancelled: PostgresError(.cancelled, operation: "checkout", detail: "the task was cancelled")
        case .timedOut:
            PostgresError(
                .checkoutTimedOut, operation: "checkout",
                detail: failures > 0
                    ? "the database cannot be reached: \(lastError?.detail ?? "")"
                    : "all \(configuration.poolSize) connections were in use for \(configuration.checkoutTimeout)")
        }
    }
}
