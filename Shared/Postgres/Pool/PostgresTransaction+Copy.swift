/// COPY, for millions of rows. Memory use is bounded by one batch.
///
/// A COPY has no total time-out; each step has the time-out of a statement. During a COPY the transaction accepts no
/// other statement. Errors name the row, counted from 1, and never a value.
extension PostgresTransaction {
    /// Copies rows into a table.
    ///
    ///     try await transaction.copy(into: "phone.book (name, number)") { try await source.nextRows() }
    ///
    /// An error of `rows` aborts the COPY; the transaction can no longer commit. When the transaction is retried,
    /// `rows` must start again from the first row.
    ///
    /// - Parameters:
    ///   - target: a table and its columns in the order of the rows. COPY takes no parameters.
    ///   - rows: returns the next rows; `nil` after the last.
    /// - Returns: the number of rows copied.
    @discardableResult
    package func copy(into target: SQL, rows: () async throws -> CopyRows?) async throws -> Int {
        try await perform { connection, number throws(PostgresError) in
            try connection.beginCopy("COPY \(target) FROM STDIN (FORMAT binary)", .in, in: number)
        }
        if let failure = await failure(putting: rows) {
            await abandon(.in)
            throw failure
        }
        return try await perform { connection, number throws(PostgresError) in
            try connection.endCopy(.in, in: number)
        }
    }

    /// Copies the rows of a query to the client, in the server's format.
    ///
    ///     try await transaction.copy("SELECT name, number FROM phone.book", as: "FORMAT csv, HEADER") { file.write($0) }
    ///
    /// An error of `receive` aborts the COPY and closes the connection; the server stops within a second.
    ///
    /// - Parameters:
    ///   - query: a query without parameters. Pass run-time values with `set_config` and `current_setting`.
    ///   - receive: takes whole rows, about 64 KiB at a time.
    /// - Returns: the number of rows copied.
    @discardableResult
    package func copy(
        _ query: SQL, as format: SQL, to receive: ([UInt8]) async throws -> Void
    ) async throws -> Int {
        try await perform { connection, number throws(PostgresError) in
            try connection.beginCopy("COPY (\(query)) TO STDOUT (\(format))", .out, in: number)
        }
        if let failure = await failure(handingTo: receive) {
            await abandon(.out)
            throw failure
        }
        return try await perform { connection, number throws(PostgresError) in
            try connection.endCopy(.out, in: number)
        }
    }

    /// Separate from ``copy(into:rows:)``, like the next function, because inlining them crashes the optimiser.
    private func failure(putting rows: () async throws -> CopyRows?) async -> (any Error)? {
        do {
            try await put(CopyRows.header)
            while let batch = try await rows() { try await put(batch.bytes) }
            try await put(CopyRows.trailer)
            return nil
        } catch {
            return error
        }
    }

    private func failure(handingTo receive: ([UInt8]) async throws -> Void) async -> (any Error)? {
        do {
            while let rows = try await take() { try await receive(rows) }
            return nil
        } catch {
            return error
        }
    }

    private func put(_ bytes: [UInt8]) async throws(PostgresError) {
        // Checked here, where the COPY can still be aborted; later, the connection would have to be closed.
        guard !Task.isCancelled else {
            throw PostgresError(.cancelled, operation: "COPY", detail: "the task was cancelled")
        }
        try await perform { connection, number throws(PostgresError) in try connection.putCopy(bytes, in: number) }
    }

    private func take() async throws(PostgresError) -> [UInt8]? {
        try await perform { connection, number throws(PostgresError) in try connection.takeCopy(in: number) }
    }

    private func abandon(_ direction: CopyDirection) async {
        // `abandonCopy` does not throw; the caller gets the original error.
        _ = try? await perform { connection, number throws(PostgresError) in
            connection.abandonCopy(direction, in: number)
        }
    }
}
