/// A field value of a header table or of declaration arguments (AMQP 0-9-1 §4.2.1 with RabbitMQ's types).
///
/// Integers of all widths decode as `int`, floats and decimals as `double`. Below ``maximumDepth`` a table decodes as
/// `void`: every publisher can send thousands of levels, and deallocating such a value overflows a small stack.
package enum AMQPValue: Hashable, Sendable {
    case void
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case text(String)
    case bytes([UInt8])
    /// Seconds since 1970.
    case timestamp(Int64)
    case array([AMQPValue])
    case table([String: AMQPValue])

    /// The most nested tables and arrays.
    package static let maximumDepth = 64
}

extension AMQPValue {
    package var text: String? { if case .text(let text) = self { text } else { nil } }
    package var int: Int64? { if case .int(let int) = self { int } else { nil } }
}

extension AMQPValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int64) { self = .int(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
}
