internal import CPostgres

/// The server's error, field by field (Postgres manual, 55.8).
///
/// Only fields that cannot hold a parameter's value are kept: DETAIL quotes the row that offends, and the messages of
/// class 22 (data exceptions) the text that could not be read.
struct ServerMessage {
    private let sqlState: String?
    private let primary: String
    private let routine: String?
    private let position: Int?
    private let table: String?
    private let column: String?
    private let constraint: String?
    /// Where the server was, which may quote the row that it was at.
    private let context: String
    /// What libpq says when it never came to an answer of the server.
    private let connectionMessage: String

    init(_ result: OpaquePointer) {
        // The field codes of postgres_ext.h, which are characters and do not import.
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
        // The plan's result type changed since it was prepared; or the name is gone, by DISCARD or a pooler.
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
            let places = [("table", table), ("column", column), ("constraint", constraint), ("row", row)]
                .compactMap { name, place in place.map { "\(name) \($0)" } }
            let message = sqlState.hasPrefix("22") ? "a value is not what the server can take here" : primary
            return ([message] + places).joined(separator: ", ")
        }
    }

    /// The row of a COPY that offends, counted from 1, and its column where that is known.
    private var row: String? {
        guard let place = context.firstMatch(of: /(?:^|\n)COPY [^\n]*?, line ([0-9]+)(, column [A-Za-z0-9_]+)?/) else {
            return nil
        }
        return "\(place.1)\(place.2 ?? "")"
    }

    /// The server counts characters, from 1.
    private static func line(of position: Int, in text: String) -> Int {
        1 + text.unicodeScalars.prefix(max(0, position - 1)).count { $0 == "\n" }
    }
}
