internal import CPostgres

/// The sole owner of a libpq result, which is copied into Swift values and freed at once.
struct ResultHandle: ~Copyable {
    private let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { PQclear(pointer) }

    /// Whether a COPY in either direction has started.
    var isCopying: Bool {
        switch PQresultStatus(pointer) {
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH: true
        default: false
        }
    }

    /// Whether a COPY in this direction has started.
    borrowing func begins(_ direction: CopyDirection) -> Bool {
        switch direction {
        case .in: PQresultStatus(pointer) == PGRES_COPY_IN
        case .out: PQresultStatus(pointer) == PGRES_COPY_OUT
        }
    }

    borrowing func outcome(operation: String, request: Request) -> Result<StatementResult, PostgresError> {
        switch PQresultStatus(pointer) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
            return .success(copied(operation))
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR:
            return .failure(ServerMessage(pointer).error(operation: operation, request: request))
        case let status:
            let name = String(cString: PQresStatus(status))
            return .failure(
                PostgresError(.connectionLost, operation: operation, detail: "unexpected result status \(name)"))
        }
    }

    private borrowing func copied(_ operation: String) -> StatementResult {
        let (rows, width) = (PQntuples(pointer), PQnfields(pointer))
        let columns = (0..<width).map {
            ResultTable.Column(name: String(cString: PQfname(pointer, $0)), oid: PQftype(pointer, $0))
        }
        var bytes: [UInt8] = []
        var cells: [Range<Int>?] = []
        cells.reserveCapacity(Int(rows) * Int(width))
        for row in 0..<rows {
            for column in 0..<width {
                guard PQgetisnull(pointer, row, column) == 0, let value = PQgetvalue(pointer, row, column) else {
                    cells.append(nil)
                    continue
                }
                let start = bytes.count
                let length = Int(PQgetlength(pointer, row, column))
                bytes.append(contentsOf: UnsafeRawBufferPointer(start: value, count: length))
                cells.append(start..<bytes.count)
            }
        }
        let tag = String(cString: PQcmdStatus(pointer))
        return StatementResult(
            table: ResultTable(operation: operation, columns: columns, rowCount: Int(rows), bytes: bytes, cells: cells),
            affected: Int(String(cString: PQcmdTuples(pointer))) ?? 0,
            command: tag.prefix { $0 != " " }.description)
    }
}
