package import FoundationEssentials

/// `timestamptz`: microseconds since 2000-01-01T00:00:00Z. Dates out of range encode as ±infinity, which decodes to
/// `distantFuture` or `distantPast`.
extension Date: PostgresElement {
    package static var postgresType: PostgresType { .timestamptz }

    /// 2000-01-01T00:00:00Z in seconds since 2001-01-01T00:00:00Z.
    private static let postgresEpoch = -31_622_400.0
    /// The server's range in microseconds: the years -4713 to 294276.
    private static let range = -211_813_488_000_000_000.0...9_223_371_331_199_999_000.0

    package func encode(to buffer: inout [UInt8]) -> Bool {
        let microseconds = ((timeIntervalSinceReferenceDate - Self.postgresEpoch) * 1_000_000).rounded()
        let value: Int64 =
            Self.range.contains(microseconds) ? Int64(microseconds) : microseconds < 0 ? .min : .max
        buffer.append(bigEndian: value)
        return true
    }

    /// Decodes `timestamptz`, and `timestamp` without a time zone as UTC.
    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Date {
        guard cell.oid == postgresType.oid || cell.oid == PostgresOID.timestamp else {
            throw .type(cell, expected: postgresType.name)
        }
        return switch try cell.integer(Int64.self, for: postgresType.name) {
        case .max: .distantFuture
        case .min: .distantPast
        case let value:
            Date(timeIntervalSinceReferenceDate: Double(value) / 1_000_000 + postgresEpoch)
        }
    }
}

/// `interval`, in microseconds. A day is 24 hours; an interval with months has no fixed length and fails to decode.
extension Duration: PostgresElement {
    package static var postgresType: PostgresType { .interval }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let microseconds = overflow ? (seconds < 0 ? .min : .max) : whole &+ attoseconds / 1_000_000_000_000
        buffer.append(bigEndian: microseconds)
        buffer.append(bigEndian: Int32(0))
        buffer.append(bigEndian: Int32(0))
        return true
    }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Duration {
        guard cell.oid == postgresType.oid else { throw .type(cell, expected: "interval") }
        var bytes = try cell.required(for: "interval")
        guard let microseconds = bytes.takeBigEndian(Int64.self), let days = bytes.takeBigEndian(Int32.self),
            let months = bytes.takeBigEndian(Int32.self), months == 0
        else { throw .form(cell, expected: "interval", "with months, which have no fixed length") }
        return .microseconds(microseconds) + .seconds(Int64(days) * 86_400)
    }
}

extension UUID: PostgresElement {
    package static var postgresType: PostgresType { .uuid }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        withUnsafeBytes(of: uuid) { buffer.append(contentsOf: $0) }
        return true
    }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> UUID {
        guard cell.oid == postgresType.oid else { throw .type(cell, expected: "uuid") }
        let bytes = try cell.required(for: "uuid")
        guard bytes.count == 16 else { throw .form(cell, expected: "uuid", "of \(bytes.count) bytes") }
        // Avoids UUID(), which reads random bytes from the kernel.
        var uuid: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &uuid) { $0.copyBytes(from: bytes) }
        return UUID(uuid: uuid)
    }
}
