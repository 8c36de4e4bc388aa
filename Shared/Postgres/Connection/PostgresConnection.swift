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
        handle = try .open(configuration.connectionKeywords, notices: notices)
    }

    func close() {
        handle = nil
        transaction = nil
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
        return try perform(sql, endsWithTask: true)
    }

    /// Runs statements without parameters, of which only the last one's answer is kept.
    func run(script: String, operation: String) throws(PostgresError) -> StatementResult {
        try exchange(.script(script), operation: operation, until: deadline(), endsWithTask: true)
    }

    var isInTransaction: Bool { handle?.isInTransaction ?? false }

    private func perform(_ sql: SQL, endsWithTask: Bool) throws(PostgresError) -> StatementResult {
        let (text, parameters) = sql.rendered()
        let (operation, deadline) = (Self.label(text), deadline())
        switch configuration.statementMode {
        case .unnamed:
            return try exchange(
                .statement(text, parameters), operation: operation, until: deadline, endsWithTask: endsWithTask)
        case .prepared:
            let key = PreparedStatements.Key(text: text, types: parameters.map(\.oid))
            let name = try prepare(key, operation: operation, until: deadline, endsWithTask: endsWithTask)
            do {
                return try exchange(
                    .prepared(name: name, parameters), operation: operation, until: deadline,
                    endsWithTask: endsWithTask)
            } catch {
                if error.code == .statementOutdated { statements.forget(key) }
                throw error
            }
        }
    }

    private func prepare(
        _ key: PreparedStatements.Key, operation: String, until deadline: ContinuousClock.Instant, endsWithTask: Bool
    ) throws(PostgresError) -> String {
        if let name = statements.name(of: key) { return name }
        if statements.isFull {
            _ = try exchange(
                .script("DEALLOCATE ALL"), operation: operation, until: deadline, endsWithTask: endsWithTask)
            statements.forgetAll()
        }
        let name = statements.newName()
        _ = try exchange(
            .prepare(name: name, key.text, types: key.types), operation: operation, until: deadline,
            endsWithTask: endsWithTask)
        statements.remember(key, as: name)
        return name
    }

    private func deadline() -> ContinuousClock.Instant {
        .now + configuration.statementTimeout + .milliseconds(500)
    }

    private func exchange(
        _ request: Request, operation: String, until deadline: ContinuousClock.Instant, endsWithTask: Bool
    ) throws(PostgresError) -> StatementResult {
        guard handle != nil, let wakeUp else {
            throw PostgresError(.connectionLost, operation: operation, detail: "the connection is closed")
        }
        let patience = Patience(deadline: deadline, wakeUp: wakeUp, endsWithTask: endsWithTask)
        do {
            return try handle!.exchange(request, operation: operation, patience: patience)
        } catch {
            if error.closesConnection || error.code == .cancelled || handle?.isBroken == true { close() }
            throw error
        }
    }

    /// The beginning of a statement, on one line, to tell it by.
    private static func label(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.count > 80 ? line.prefix(79) + "…" : line
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
        guard transaction == number else {
            throw PostgresError(
                handle == nil ? .connectionLost : .transactionEnded, operation: Self.label(sql.rendered().text),
                detail: handle == nil ? "the connection was lost before" : "the body of the transaction has returned")
        }
        return try perform(sql, endsWithTask: true)
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
