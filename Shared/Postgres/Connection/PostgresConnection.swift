internal import Logging

/// One connection on its own thread. The only owner of libpq's handle: every use of it is a job of this actor, and jobs
/// block that thread, never the cooperative pool.
///
/// Once the server has not answered as it should, the connection closes itself and stays closed; a new one takes its
/// place in the pool.
actor PostgresConnection {
    nonisolated let executor: ConnectionExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let configuration: PostgresConfiguration
    private let notices: NoticeSink
    private let wakeUp: WakeUp?
    private var handle: ConnectionHandle?
    private var statements = PreparedStatements()
    /// The transaction that is open here. A `PostgresTransaction` that outlives its body has another number.
    private var transaction: UInt64?
    private var transactionsBegun: UInt64 = 0
    /// What is being copied, while it is.
    private var copy: Copy?

    private struct Copy {
        let request: Request
        let operation: String
        /// Whether the server has sent all rows.
        var isTaken = false
    }

    init(configuration: PostgresConfiguration, logger: Logger) {
        self.configuration = configuration
        executor = ConnectionExecutor(label: "postgres.\(configuration.database)")
        notices = NoticeSink(logger: logger)
        wakeUp = WakeUp()
    }

    isolated deinit { handle = nil }

    func open() throws(PostgresError) {
        guard wakeUp != nil else {
            throw PostgresError(.connectionFailed, operation: "connect", detail: "no file descriptor is left")
        }
        let first = configuration.refreshed()
        do throws(PostgresError) {
            handle = try .open(first.connectionKeywords, notices: notices)
        } catch {
            // The password may have been changed while the old one was tried.
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

    /// Whether the connection can be used, as far as can be told without asking the server.
    func isUsable() -> Bool {
        guard handle?.isOpen() == true else {
            close()
            return false
        }
        return true
    }

    /// Ends the waiting of the current statement if its task is cancelled.
    nonisolated func interrupt() { wakeUp?.signal() }
}

// MARK: - Statements

extension PostgresConnection {
    /// Runs a statement in a transaction of its own. `nil` when the connection turned out to be closed already, so that
    /// nothing was sent.
    func run(_ sql: SQL) throws(PostgresError) -> StatementResult? {
        guard isUsable() else { return nil }
        return try perform(sql.rendered())
    }

    /// Runs statements without parameters, of which only the last one's answer is kept.
    func run(script: String, operation: String) throws(PostgresError) -> StatementResult {
        try exchange(.script(script), operation: operation, until: deadline(), endsWithTask: true)
    }

    var isInTransaction: Bool { handle?.isInTransaction ?? false }

    private func perform(_ statement: SQL.Rendered) throws(PostgresError) -> StatementResult {
        let (text, parameters) = statement
        let deadline = deadline()
        switch configuration.statementMode {
        case .unnamed:
            return try exchange(.statement(text, parameters), operation: text, until: deadline, endsWithTask: true)
        case .prepared:
            let key = PreparedStatements.Key(text: text, types: parameters.map(\.oid))
            let name = try prepare(key, until: deadline)
            do {
                return try exchange(
                    .prepared(name: name, parameters), operation: text, until: deadline, endsWithTask: true)
            } catch {
                if error.code == .statementOutdated { statements.forget(key) }
                throw error
            }
        }
    }

    private func prepare(
        _ key: PreparedStatements.Key, until deadline: ContinuousClock.Instant
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
        try attend(operation, until: deadline, endsWithTask: endsWithTask) { handle, patience throws(PostgresError) in
            try handle.exchange(request, operation: operation, patience: patience)
        }
    }

    /// Lends the handle; what leaves it in the middle of something closes the connection.
    private func attend<R>(
        _ operation: String, until deadline: ContinuousClock.Instant, endsWithTask: Bool,
        _ work: (borrowing ConnectionHandle, Patience) throws(PostgresError) -> R
    ) throws(PostgresError) -> R {
        guard handle != nil, let wakeUp else {
            throw PostgresError(.connectionLost, operation: operation, detail: "the connection is closed")
        }
        let patience = Patience(deadline: deadline, wakeUp: wakeUp, endsWithTask: endsWithTask)
        do {
            return try work(handle!, patience)
        } catch {
            if error.closesConnection || error.code == .cancelled || handle?.isBroken == true { close() }
            throw error
        }
    }
}

// MARK: - Transactions

extension PostgresConnection {
    /// Begins a transaction and returns its number; `nil` when the connection turned out to be closed already.
    func begin(_ isolation: PostgresIsolation) throws(PostgresError) -> UInt64? {
        guard isUsable() else { return nil }
        _ = try exchange(
            .script(isolation.beginStatement), operation: "BEGIN", until: deadline(), endsWithTask: true)
        transactionsBegun += 1
        transaction = transactionsBegun
        return transactionsBegun
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
                detail: "rows are being copied (\(PostgresError.label(copy.operation))); it has to wait")
        }
    }

    /// Commits, whether or not the task has been cancelled meanwhile.
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
                    detail: "one of its statements had failed; the server rolled it back")
            }
        } catch {
            guard error.isLostConnection || error.code == .deadlineExceeded else { throw error }
            throw PostgresError(.commitUnknown, operation: "COMMIT", detail: error.detail)
        }
    }

    /// Rolls back, whether or not the task has been cancelled. What cannot be rolled back is closed, which is the same
    /// to the server.
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
    /// The server's time-out of a whole statement does not go for a COPY, which is as long as what is copied. Each of
    /// its steps is waited for as long as a statement is.
    func beginCopy(_ sql: SQL, _ direction: CopyDirection, in number: UInt64) throws(PostgresError) {
        let operation = sql.rendered().text
        let request = Request.copy(operation)
        try check(number, before: operation)
        _ = try exchange(
            .script("SET LOCAL statement_timeout = 0"), operation: operation, until: deadline(), endsWithTask: true)
        try attend(operation, until: deadline(), endsWithTask: true) { handle, patience throws(PostgresError) in
            try handle.beginCopy(request, direction, operation: operation, patience: patience)
        }
        copy = Copy(request: request, operation: operation)
    }

    func putCopy(_ bytes: [UInt8], in number: UInt64) throws(PostgresError) {
        let operation = try copyUnderWay(in: number).operation
        try attend(operation, until: deadline(), endsWithTask: true) { handle, patience throws(PostgresError) in
            try handle.put(bytes, operation: operation, patience: patience)
        }
    }

    /// The next rows, some 64 KiB of them; `nil` after the last.
    func takeCopy(in number: UInt64) throws(PostgresError) -> [UInt8]? {
        let copy = try copyUnderWay(in: number)
        guard !copy.isTaken else { return nil }
        let (rows, isEnd) = try attend(
            copy.operation, until: deadline(), endsWithTask: true
        ) { handle, patience throws(PostgresError) in
            try handle.take(upTo: 64 << 10, operation: copy.operation, patience: patience)
        }
        self.copy?.isTaken = isEnd
        return rows
    }

    /// Ends a COPY whose rows have all been put or taken.
    ///
    /// - Returns: how many there were.
    func endCopy(_ direction: CopyDirection, in number: UInt64) throws(PostgresError) -> Int {
        let copy = try copyUnderWay(in: number)
        self.copy = nil
        let result = try attend(
            copy.operation, until: deadline(), endsWithTask: true
        ) { handle, patience throws(PostgresError) in
            if direction == .in { try handle.endPutting(because: nil, operation: copy.operation, patience: patience) }
            return try handle.answer(to: copy.request, operation: copy.operation, patience: patience)
        }
        _ = try exchange(
            .script("SET LOCAL statement_timeout = \(configuration.statementTimeoutInMilliseconds)"),
            operation: copy.operation, until: deadline(), endsWithTask: true)
        return result.affected
    }

    /// Gives up a COPY, whether or not the task has been cancelled; its transaction cannot be committed any more. One
    /// that the server is still sending takes its connection along, as does one that cannot be given up in time.
    func abandonCopy(_ direction: CopyDirection, in number: UInt64) {
        guard transaction == number, let copy else { return }
        self.copy = nil
        switch direction {
        case .in:
            do throws(PostgresError) {
                _ = try attend(
                    copy.operation, until: deadline(), endsWithTask: false
                ) { handle, patience throws(PostgresError) in
                    try handle.endPutting(because: "given up", operation: copy.operation, patience: patience)
                    return try handle.answer(to: copy.request, operation: copy.operation, patience: patience)
                }
            } catch {
                // That it was given up is what the server says too; anything worse has closed the connection.
            }
        case .out: close()
        }
    }

    private func copyUnderWay(in number: UInt64) throws(PostgresError) -> Copy {
        guard transaction == number, let copy else {
            throw PostgresError(.connectionLost, operation: "COPY", detail: "the connection was lost before")
        }
        return copy
    }
}
