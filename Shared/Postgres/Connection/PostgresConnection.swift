internal import Logging

/// One connection with its own thread and the sole owner of libpq's handle. Jobs of this actor block that thread, never
/// the cooperative pool.
///
/// After a protocol error or a missing response the connection closes itself and stays closed; the pool replaces it.
actor PostgresConnection {
    nonisolated let executor: ConnectionExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let configuration: PostgresConfiguration
    private let notices: NoticeSink
    private let wakeUp: WakeUpPipe?
    private var handle: ConnectionHandle?
    private var statements = PreparedStatements()
    /// The open transaction's number. A `PostgresTransaction` used after its body has another number.
    private var transaction: UInt64?
    private var transactionCount: UInt64 = 0
    /// The COPY in progress, if any.
    private var copy: ActiveCopy?

    private struct ActiveCopy {
        let request: Request
        let operation: String
        /// Whether the server has sent all rows.
        var isTaken = false
    }

    init(configuration: PostgresConfiguration, logger: Logger) {
        self.configuration = configuration
        executor = ConnectionExecutor(label: "postgres.\(configuration.database)")
        notices = NoticeSink(logger: logger)
        wakeUp = WakeUpPipe()
    }

    isolated deinit { handle = nil }

    func open() throws(PostgresError) {
        guard wakeUp != nil else {
            throw PostgresError(
                .connectionFailed, operation: "connect", detail: "the process has no file descriptor left")
        }
        let first = configuration.refreshed()
        do throws(PostgresError) {
            handle = try .open(first.connectionKeywords, notices: notices)
        } catch {
            // The password may have changed during the attempt.
            let second = configuration.refreshed()
            guard !second.connectsLike(first) else { throw error }
            handle = try .open(second.connectionKeywords, notices: notices)
        }
    }

    func close() {
        handle = nil
        transaction = nil
        copy = nil
    }

    /// Whether the connection is usable, checked without a round trip; closes it if not.
    func isUsable() -> Bool {
        guard handle?.isOpen() == true else {
            close()
            return false
        }
        return true
    }

    /// Wakes the current wait, which then ends if its task is cancelled.
    nonisolated func interrupt() { wakeUp?.signal() }
}

// MARK: - Statements

extension PostgresConnection {
    /// Runs a statement outside a transaction. Returns `nil`, without sending it, if the connection is already closed.
    func run(_ sql: SQL) throws(PostgresError) -> StatementResult? {
        guard isUsable() else { return nil }
        return try perform(sql.rendered())
    }

    /// Runs statements without parameters and returns the last one's result.
    func run(script: String, operation: String) throws(PostgresError) -> StatementResult {
        try exchange(.script(script), operation: operation, until: deadline(), endsWithTask: true)
    }

    var isInTransaction: Bool { handle?.isInTransaction ?? false }

    private func perform(_ statement: SQL.Rendered) throws(PostgresError) -> StatementResult {
        let (text, parameters) = statement
        let deadline = deadline()
        let key = PreparedStatements.StatementKey(text: text, types: parameters.map(\.oid))
        let name = try prepare(key, until: deadline)
        do {
            return try exchange(.prepared(name: name, parameters), operation: text, until: deadline, endsWithTask: true)
        } catch {
            if error.code == .statementOutdated { statements.forget(key) }
            throw error
        }
    }

    private func prepare(
        _ key: PreparedStatements.StatementKey, until deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> String {
        if let name = statements.name(of: key) { return name }
        if statements.isFull {
            _ = try exchange(.script("DEALLOCATE ALL"), operation: key.text, until: deadline, endsWithTask: true)
            statements.forgetAll()
        }
        let name = statements.newName()
        _ = try exchange(
            .prepare(name: name, key.text, types: key.types), operation: key.text, until: deadline, endsWithTask: true)
        statements.remember(key, as: name)
        return name
    }

    private func deadline() -> ContinuousClock.Instant {
        .now + configuration.statementTimeout + .milliseconds(500)
    }

    private func exchange(
        _ request: Request, operation: String, until deadline: ContinuousClock.Instant, endsWithTask: Bool
    ) throws(PostgresError) -> StatementResult {
        try withHandle(
            operation, until: deadline, endsWithTask: endsWithTask
        ) { handle, waitPolicy throws(PostgresError) in
            try handle.exchange(request, operation: operation, waitPolicy: waitPolicy)
        }
    }

    /// Calls `work` with the handle; closes the connection after an error that leaves it in an undefined state.
    private func withHandle<R>(
        _ operation: String, until deadline: ContinuousClock.Instant, endsWithTask: Bool,
        _ work: (borrowing ConnectionHandle, WaitPolicy) throws(PostgresError) -> R
    ) throws(PostgresError) -> R {
        guard handle != nil, let wakeUp else {
            throw PostgresError(.connectionLost, operation: operation, detail: "the connection is closed")
        }
        let waitPolicy = WaitPolicy(deadline: deadline, wakeUp: wakeUp, endsWithTask: endsWithTask)
        do {
            return try work(handle!, waitPolicy)
        } catch {
            if error.closesConnection || error.code == .cancelled || handle?.isBroken == true { close() }
            throw error
        }
    }
}

// MARK: - Transactions

extension PostgresConnection {
    /// Begins a transaction and returns its number; `nil` if the connection is already closed.
    func begin(_ isolation: PostgresIsolation) throws(PostgresError) -> UInt64? {
        guard isUsable() else { return nil }
        _ = try exchange(
            .script(isolation.beginStatement), operation: "BEGIN", until: deadline(), endsWithTask: true)
        transactionCount += 1
        transaction = transactionCount
        return transactionCount
    }

    func run(_ sql: SQL, in number: UInt64) throws(PostgresError) -> StatementResult {
        let statement = sql.rendered()
        try check(number, before: statement.text)
        return try perform(statement)
    }

    private func check(_ number: UInt64, before operation: String) throws(PostgresError) {
        guard transaction == number else {
            throw PostgresError(
                handle == nil ? .connectionLost : .transactionEnded, operation: operation,
                detail: handle == nil ? "the connection was lost before" : "the body of the transaction has returned")
        }
        if let copy {
            throw PostgresError(
                .copying, operation: operation,
                detail: "a COPY is in progress (\(PostgresError.label(copy.operation))); run the statement after it")
        }
    }

    /// Commits, even if the task was cancelled.
    func commit(_ number: UInt64) throws(PostgresError) {
        guard transaction == number else {
            throw PostgresError(.connectionLost, operation: "COMMIT", detail: "the connection was lost before")
        }
        defer { transaction = nil }
        do throws(PostgresError) {
            let result = try exchange(.script("COMMIT"), operation: "COMMIT", until: deadline(), endsWithTask: false)
            guard result.command == "COMMIT" else {
                throw PostgresError(
                    .transactionAborted, operation: "COMMIT",
                    detail: "a statement of the transaction failed; the server rolled it back")
            }
        } catch {
            guard error.isLostConnection || error.code == .deadlineExceeded else { throw error }
            throw PostgresError(.commitUnknown, operation: "COMMIT", detail: error.detail)
        }
    }

    /// Rolls back, even if the task was cancelled. Closes the connection if that fails; the server then rolls back.
    func rollback(_ number: UInt64) {
        guard transaction == number else { return }
        transaction = nil
        do {
            _ = try exchange(.script("ROLLBACK"), operation: "ROLLBACK", until: deadline(), endsWithTask: false)
        } catch {
            close()
        }
    }
}

// MARK: - Copying

extension PostgresConnection {
    /// Begins a COPY. Disables `statement_timeout`, since a COPY may take any time; each step has the client's
    /// deadline.
    func beginCopy(_ sql: SQL, _ direction: CopyDirection, in number: UInt64) throws(PostgresError) {
        let operation = sql.rendered().text
        let request = Request.copy(operation)
        try check(number, before: operation)
        _ = try exchange(
            .script("SET LOCAL statement_timeout = 0"), operation: operation, until: deadline(), endsWithTask: true)
        try withHandle(operation, until: deadline(), endsWithTask: true) { handle, waitPolicy throws(PostgresError) in
            try handle.beginCopy(request, direction, operation: operation, waitPolicy: waitPolicy)
        }
        copy = ActiveCopy(request: request, operation: operation)
    }

    func putCopy(_ bytes: [UInt8], in number: UInt64) throws(PostgresError) {
        let operation = try copyUnderWay(in: number).operation
        try withHandle(operation, until: deadline(), endsWithTask: true) { handle, waitPolicy throws(PostgresError) in
            try handle.put(bytes, operation: operation, waitPolicy: waitPolicy)
        }
    }

    /// Returns the next rows, about 64 KiB; `nil` after the last.
    func takeCopy(in number: UInt64) throws(PostgresError) -> [UInt8]? {
        let copy = try copyUnderWay(in: number)
        guard !copy.isTaken else { return nil }
        let (rows, isEnd) = try withHandle(
            copy.operation, until: deadline(), endsWithTask: true
        ) { handle, waitPolicy throws(PostgresError) in
            try handle.take(upTo: 64 << 10, operation: copy.operation, waitPolicy: waitPolicy)
        }
        self.copy?.isTaken = isEnd
        return rows
    }

    /// Ends a COPY after its last row; returns the number of rows.
    func endCopy(_ direction: CopyDirection, in number: UInt64) throws(PostgresError) -> Int {
        let copy = try copyUnderWay(in: number)
        self.copy = nil
        let result = try withHandle(
            copy.operation, until: deadline(), endsWithTask: true
        ) { handle, waitPolicy throws(PostgresError) in
            if direction == .in {
                try handle.endPutting(because: nil, operation: copy.operation, waitPolicy: waitPolicy)
            }
            return try handle.answer(to: copy.request, operation: copy.operation, waitPolicy: waitPolicy)
        }
        _ = try exchange(
            .script("SET LOCAL statement_timeout = \(configuration.statementTimeoutInMilliseconds)"),
            operation: copy.operation, until: deadline(), endsWithTask: true)
        return result.affected
    }

    /// Aborts a COPY, even if the task was cancelled; its transaction can no longer commit. Closes the connection of a
    /// COPY to the client, and of one that does not abort in time.
    func abandonCopy(_ direction: CopyDirection, in number: UInt64) {
        guard transaction == number, let copy else { return }
        self.copy = nil
        switch direction {
        case .in:
            do throws(PostgresError) {
                _ = try withHandle(
                    copy.operation, until: deadline(), endsWithTask: false
                ) { handle, waitPolicy throws(PostgresError) in
                    try handle.endPutting(
                        because: "aborted by the client", operation: copy.operation, waitPolicy: waitPolicy)
                    return try handle.answer(to: copy.request, operation: copy.operation, waitPolicy: waitPolicy)
                }
            } catch {
                // The server reports the abort as an error; any other error has closed the connection.
            }
        case .out: close()
        }
    }

    private func copyUnderWay(in number: UInt64) throws(PostgresError) -> ActiveCopy {
        guard transaction == number, let copy else {
            throw PostgresError(.connectionLost, operation: "COPY", detail: "the connection was lost before")
        }
        return copy
    }
}
