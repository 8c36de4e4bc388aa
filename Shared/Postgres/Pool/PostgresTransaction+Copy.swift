/// COPY: the way for rows by the million. Neither side holds more than one batch of them at a time.
///
/// A COPY may take as long as it takes, as long as it goes on: the other side's silence is waited for as long as for a
/// statement. Between its beginning and its end the transaction takes no other statement. An error names the row that it
/// is about, counted from 1, and never a value.
extension PostgresTransaction {
    /// Copies rows into a table.
    ///
    ///     try await transaction.copy(into: "phone.book (name, number)") { try await source.nextRows() }
    ///
    /// What `rows` throws ends the COPY, and the transaction cannot be committed any more. A transaction that is run
    /// again asks `rows` again: it has to begin anew then.
    ///
    /// - Parameters:
    ///   - target: a table and its columns, as the rows have them. COPY takes no parameters.
    ///   - rows: the next rows; `nil` after the last.
    /// - Returns: how many rows were copied.
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

    /// Copies the rows of a query out, as the server writes them.
    ///
    ///     try await transaction.copy("SELECT name, number FROM phone.book", as: "FORMAT csv, HEADER") { file.write($0) }
    ///
    /// What `receive` throws ends the COPY; its connection is thrown away then, and the server gives up within a second.
    ///
    /// - Parameters:
    ///   - query: takes no parameters. What must be chosen at run time is set with `set_config` before and read with
    ///     `current_setting`.
    ///   - format: COPY's options.
    ///   - receive: is given whole rows, some 64 KiB at a time.
    /// - Returns: how many rows were copied.
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

    /// Apart from ``copy(into:rows:)``, and the next from its own: together, the compiler's optimiser does not survive
    /// them.
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
        // Seen here, where the server can still be told; later, the connection would have to be thrown away.
        guard !Task.isCancelled else {
            throw PostgresError(.cancelled, operation: "COPY", detail: "the task was cancelled")
        }
        try await perform { connection, number throws(PostgresError) in try connection.putCopy(bytes, in: number) }
    }

    private func take() async throws(PostgresError) -> [UInt8]? {
        try await perform { connection, number throws(PostgresError) in try connection.takeCopy(in: number) }
    }

    private func abandon(_ direction: CopyDirection) async {
        // Abandoning throws nothing; what made it necessary is on its way to the caller already.
        _ = try? await perform { connection, number throws(PostgresError) in
            connection.abandonCopy(direction, in: number)
        }
    }
}
