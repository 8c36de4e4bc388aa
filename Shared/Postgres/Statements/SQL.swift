/// A statement with literal text and bound values.
///
/// Every interpolated value becomes a parameter (`$1`, `$2`, …), sent separately in binary. The text consists of
/// `StaticString`s, so run-time strings cannot become SQL. The only exception is `\(identifier:)`, a quoted name.
///
///     let active: SQL = onlyActive ? "AND status = 0" : ""
///     let rows = try await pool.query("SELECT id FROM device WHERE user_id = ANY(\(users)) \(active)")
///
/// Write a batch as one statement over `unnest(\(ids), \(names))`; arrays are bound too. Parameters are typed (`Int` is
/// `int8`, `String` is `text`, …); cast to other types: `\(state)::registry.state`.
package struct SQL: Sendable {
    enum Fragment: Sendable {
        case text(String)
        case value(PostgresParameter)
    }

    private(set) var fragments: [Fragment]

    /// The text with numbered parameters, and their values in order.
    typealias Rendered = (text: String, parameters: [PostgresParameter])

    /// Returns the text and parameters to send.
    func rendered() -> Rendered {
        var text = ""
        var parameters: [PostgresParameter] = []
        for fragment in fragments {
            switch fragment {
            case .text(let piece): text += piece
            case .value(let parameter):
                parameters.append(parameter)
                text += "$\(parameters.count)"
            }
        }
        return (text, parameters)
    }
}

/// An encoded parameter: its type and its binary form; no bytes for NULL.
struct PostgresParameter: Sendable {
    let oid: UInt32
    let bytes: [UInt8]?

    init<Value: PostgresValue>(_ value: Value?) {
        oid = Value.postgresType.oid
        var buffer: [UInt8] = []
        bytes = value.encode(to: &buffer) ? buffer : nil
    }
}

extension SQL: ExpressibleByStringInterpolation {
    package init(stringLiteral text: StaticString) { fragments = [.text(text.description)] }

    package init(stringInterpolation: StringInterpolation) { fragments = stringInterpolation.fragments }

    package struct StringInterpolation: StringInterpolationProtocol {
        var fragments: [Fragment] = []

        package init(literalCapacity: Int, interpolationCount: Int) {
            fragments.reserveCapacity(2 * interpolationCount + 1)
        }

        package mutating func appendLiteral(_ text: StaticString) { fragments.append(.text(text.description)) }

        /// Binds `value`.
        package mutating func appendInterpolation(_ value: some PostgresValue) {
            fragments.append(.value(PostgresParameter(value)))
        }

        /// Binds `value`, or NULL.
        package mutating func appendInterpolation<Value: PostgresValue>(_ value: Value?) {
            fragments.append(.value(PostgresParameter(value)))
        }

        /// Inserts another statement's text, with its values still bound.
        package mutating func appendInterpolation(_ fragment: SQL) { fragments += fragment.fragments }

        /// Inserts a quoted name of a schema, table, column or database. Each name makes a separate prepared statement,
        /// so use it for a bounded number of names only.
        package mutating func appendInterpolation(identifier: String) {
            fragments.append(.text("\"\(identifier.replacing("\"", with: "\"\""))\""))
        }
    }
}
