/// A statement whose text is written in the program and whose values are bound.
///
/// Every interpolated value becomes a parameter (`$1`, `$2`, …) that travels beside the text, in binary. The text itself
/// is made of `StaticString`s, so nothing that is known only at run time can become part of it; the one exception is
/// `\(identifier:)`, which cannot be anything but a quoted name.
///
///     let active: SQL = onlyActive ? "AND status = 0" : ""
///     let rows = try await pool.query("SELECT id FROM device WHERE user_id = ANY(\(users)) \(active)")
///
/// A batch is one statement over `unnest(\(ids), \(names))`; arrays are bound like everything else. Parameters are typed
/// (`Int` is `int8`, `String` is `text`, …); where the server wants another type, cast: `\(state)::registry.state`.
package struct SQL: Sendable {
    enum Fragment: Sendable {
        case text(String)
        case value(PostgresParameter)
    }

    private(set) var fragments: [Fragment]

    /// The text with its numbered parameters, and their values in that order.
    typealias Rendered = (text: String, parameters: [PostgresParameter])

    /// As it goes to the server.
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

/// A value on its way to the server: the type it is declared as and its binary form, none for NULL.
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

        /// Inserts a name of a schema, table, column or database, quoted whatever it contains. Every different name
        /// makes a different statement to prepare: not for names without number.
        package mutating func appendInterpolation(identifier: String) {
            fragments.append(.text("\"\(identifier.replacing("\"", with: "\"\""))\""))
        }
    }
}
