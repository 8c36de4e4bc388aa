internal import CPostgres

/// The fields of a server error (Postgres manual, 55.8).
///
/// Contains only fields without parameter values: DETAIL quotes the offending row, and messages of class 22 (data
/// exceptions) quote the invalid text.
struct ServerMessage {
    private let sqlState: String?
    private let primary: String
    private let routine: String?
    private let position: Int?
    private let table: String?
    private let column: String?
    private let constraint: String?
    /// The CONTEXT field, which may quote a row.
    private let context: String
    /// libpq's message when the server sent no error.
    private let connectionMessage: String

    init(_ result: OpaquePointer) {
        // Field codes of postgres_ext.h. They are character macros, which Swift does not import.
        func field(_ code: Unicode.Scalar) -> String? {
            PQresultErrorField(result, Int32(code.value)).map { String(cString: $0) }
        }
        sqlState = field("C")
        primary = field("M") ?? ""
        routine = field("R")
        position = field("P").flatMap { Int($0) }
        table = field("t")
        column = field("c")
        constraint = field("n")
        context = field("W") ?? ""
        connectionMessage = String(cString: PQresultErrorMessage(result))
            .split(whereSeparator: \.isNewline).joined(separator: "; ")
    }

    func error(operation: String, request: Request) -> PostgresError {
        guard let sqlState else {
            return PostgresError(.connectionLost, operation: operation, detail: connectionMessage)
        }
        return PostgresError(code(sqlState), operation: operation, detail: detail(sqlState, request))
    }

    private func code(_ sqlState: String) -> PostgresError.Code {
        switch sqlState {
        // The result type changed since the statement was prepared, or the statement is gone (DISCARD, a pooler).
        case "0A000" where routine == "RevalidateCachedQuery": .statementOutdated
        case "26000": .statementOutdated
        default: .sqlState(sqlState)
        }
    }

    private func detail(_ sqlState: String, _ request: Request) -> String {
        switch request {
        case .script(let text):
            let line = position.map { Self.line(of: $0, in: text) }
            return primary + (line.map { " (line \($0))" } ?? "")
        case .statement, .prepare, .prepared, .copy:
            let locations = [("table", table), ("column", column), ("constraint", constraint), ("row", row)]
                .compactMap { name, location in location.map { "\(name) \($0)" } }
            let message = sqlState.hasPrefix("22") ? "the server rejected a value" : primary
            return ([message] + locations).joined(separator: ", ")
        }
    }

    /// The offending row of a COPY, counted from 1, and its column if known.
    private var row: String? {
        guard let match = context.firstMatch(of: /(?:^|\n)COPY [^\n]*?, line ([0-9]+)(, column [A-Za-z0-9_]+)?/) else {
            return nil
        }
        return "\(match.1)\(match.2 ?? "")"
    }

    /// Returns the line of a position, which the server counts in characters from 1.
    private static func line(of position: Int, in text: String) -> Int {
        1 + text.unicodeScalars.prefix(max(0, position - 1)).count { $0 == "\n" }
    }
}
