internal import CPostgres

enum CopyDirection: Sendable {
    /// From the client to the server.
    case `in`
    case out
}

/// COPY. Every step blocks, at most until the deadline.
extension ConnectionHandle {
    borrowing func beginCopy(
        _ request: Request, _ direction: CopyDirection, operation: String, waitPolicy: WaitPolicy
    ) throws(PostgresError) {
        guard queue(request) else { throw connectionLost(operation) }
        try flush(operation, waitPolicy)
        guard let result = try nextResult(operation, waitPolicy) else { throw connectionLost(operation) }
        guard !result.begins(direction) else { return }
        let outcome = result.outcome(operation: operation, request: request)
        // A COPY in the other direction has no further results to wait for.
        if !result.isCopying {
            while try nextResult(operation, waitPolicy) != nil {}
        }
        _ = try outcome.get()
        throw PostgresError(
            .connectionLost, operation: operation, detail: "the statement is not a COPY in this direction")
    }

    /// Sends rows and waits until they are written to the socket, which bounds the memory used.
    borrowing func put(_ bytes: [UInt8], operation: String, waitPolicy: WaitPolicy) throws(PostgresError) {
        while true {
            let answer = bytes.withUnsafeBytes { bytes in
                PQputCopyData(
                    pointer, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
            }
            if try isPut(answer, operation, waitPolicy) { return try flush(operation, waitPolicy) }
        }
    }

    /// Ends the rows; a `reason` makes the COPY fail.
    borrowing func endPutting(
        because reason: String?, operation: String, waitPolicy: WaitPolicy
    ) throws(PostgresError) {
        while true {
            if try isPut(PQputCopyEnd(pointer, reason), operation, waitPolicy) {
                return try flush(operation, waitPolicy)
            }
        }
    }

    private borrowing func isPut(
        _ answer: Int32, _ operation: String, _ waitPolicy: WaitPolicy
    ) throws(PostgresError) -> Bool {
        switch answer {
        case 1: return true
        case 0:
            try wait(toWrite: true, operation, waitPolicy)
            guard PQconsumeInput(pointer) == 1 else { throw connectionLost(operation) }
            return false
        default: throw connectionLost(operation)
        }
    }

    /// Returns received rows, up to about `size` bytes, and whether the last row is among them. Read the result after
    /// it.
    borrowing func take(
        upTo size: Int, operation: String, waitPolicy: WaitPolicy
    ) throws(PostgresError) -> (rows: [UInt8], isEnd: Bool) {
        var bytes: [UInt8] = []
        while bytes.count < size {
            var row: UnsafeMutablePointer<CChar>?
            let length = PQgetCopyData(pointer, &row, 1)
            if let row {
                bytes.append(contentsOf: UnsafeRawBufferPointer(start: row, count: Int(length)))
                PQfreemem(row)
                continue
            }
            switch length {
            case 0:
                guard bytes.isEmpty else { return (bytes, false) }
                try wait(toWrite: false, operation, waitPolicy)
                guard PQconsumeInput(pointer) == 1 else { throw connectionLost(operation) }
            case -1: return (bytes, true)
            default: throw connectionLost(operation)
            }
        }
        return (bytes, false)
    }
}
