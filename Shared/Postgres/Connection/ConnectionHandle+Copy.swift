internal import CPostgres

enum CopyDirection: Sendable {
    /// From us to the server.
    case `in`
    case out
}

/// COPY, which is one statement with rows flowing between its beginning and its answer. Every step blocks, at most until
/// the deadline.
extension ConnectionHandle {
    borrowing func beginCopy(
        _ request: Request, _ direction: CopyDirection, operation: String, patience: Patience
    ) throws(PostgresError) {
        guard queue(request) else { throw lost(operation) }
        try flush(operation, patience)
        guard let result = try nextResult(operation, patience) else { throw lost(operation) }
        guard !result.begins(direction) else { return }
        let outcome = result.outcome(operation: operation, request: request)
        // Of the other direction, there is no end to wait for.
        if !result.isCopying {
            while try nextResult(operation, patience) != nil {}
        }
        _ = try outcome.get()
        throw PostgresError(.connectionLost, operation: operation, detail: "it is no COPY")
    }

    /// Sends rows and waits until they have left, so that no more than these are ever held here.
    borrowing func put(_ bytes: [UInt8], operation: String, patience: Patience) throws(PostgresError) {
        while true {
            let answer = bytes.withUnsafeBytes { bytes in
                PQputCopyData(
                    pointer, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
            }
            if try isPut(answer, operation, patience) { return try flush(operation, patience) }
        }
    }

    /// Says that no rows follow; with a reason, that those before shall not count.
    borrowing func endPutting(because reason: String?, operation: String, patience: Patience) throws(PostgresError) {
        while true {
            if try isPut(PQputCopyEnd(pointer, reason), operation, patience) { return try flush(operation, patience) }
        }
    }

    private borrowing func isPut(
        _ answer: Int32, _ operation: String, _ patience: Patience
    ) throws(PostgresError) -> Bool {
        switch answer {
        case 1: return true
        case 0:
            try wait(toWrite: true, operation, patience)
            guard PQconsumeInput(pointer) == 1 else { throw lost(operation) }
            return false
        default: throw lost(operation)
        }
    }

    /// The rows that have come, up to about `size` bytes of them, and whether the last was among them. After that the
    /// answer is to be read.
    borrowing func take(
        upTo size: Int, operation: String, patience: Patience
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
                try wait(toWrite: false, operation, patience)
                guard PQconsumeInput(pointer) == 1 else { throw lost(operation) }
            case -1: return (bytes, true)
            default: throw lost(operation)
            }
        }
        return (bytes, false)
    }
}
