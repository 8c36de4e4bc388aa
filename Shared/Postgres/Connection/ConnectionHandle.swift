internal import CPostgres

/// The sole owner of a libpq connection, which it frees. Confined to the thread of its `PostgresConnection`.
struct ConnectionHandle: ~Copyable {
    let pointer: OpaquePointer

    private init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { PQfinish(pointer) }

    /// Connects to the first reachable host; `connect_timeout` applies to each. Blocks.
    static func open(_ keywords: [String: String], notices: NoticeSink) throws(PostgresError) -> ConnectionHandle {
        let pairs = Array(keywords)
        let connection = withCStrings(pairs.map(\.key)) { names in
            withCStrings(pairs.map(\.value)) { values in PQconnectdbParams(names, values, 0) }
        }
        guard let connection else {
            throw PostgresError(.connectionFailed, operation: "connect", detail: "out of memory")
        }
        let handle = ConnectionHandle(connection)
        guard PQstatus(connection) == CONNECTION_OK, PQsetnonblocking(connection, 1) == 0 else {
            throw PostgresError(.connectionFailed, operation: "connect", detail: handle.lastMessage)
        }
        notices.install(on: connection)
        return handle
    }

    var socket: Int32 { PQsocket(pointer) }

    /// Reads input that arrived while the connection was idle; returns whether the connection is still open.
    borrowing func isOpen() -> Bool {
        while isReadable(socket) {
            guard PQconsumeInput(pointer) == 1 else { return false }
            _ = PQisBusy(pointer)
        }
        return !isBroken
    }

    var isBroken: Bool { PQstatus(pointer) != CONNECTION_OK }

    var isInTransaction: Bool { PQtransactionStatus(pointer) == PQTRANS_INTRANS }

    /// libpq's last error message. It contains hosts and users, not passwords.
    var lastMessage: String {
        String(cString: PQerrorMessage(pointer)).split(whereSeparator: \.isNewline)
            .map { $0.trimmingPrefix(while: \.isWhitespace) }.joined(separator: "; ")
    }
}

/// Calls `body` with `strings` as a NULL-terminated array of C strings.
private func withCStrings<R>(
    _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> R
) -> R {
    var arena: [CChar] = []
    var offsets: [Int] = []
    for string in strings {
        offsets.append(arena.count)
        arena += string.utf8CString
    }
    return arena.withUnsafeBufferPointer { arena in
        var pointers: [UnsafePointer<CChar>?] = offsets.map { arena.baseAddress! + $0 }
        pointers.append(nil)
        return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
