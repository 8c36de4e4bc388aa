/// A built-in type and its fixed object ids (`pg_type.dat`).
package struct PostgresType: Hashable, Sendable {
    package let name: String
    let oid: UInt32
    /// The array type's object id; 0 if no array of it is encoded.
    let arrayOID: UInt32

    static let bool = PostgresType(name: "bool", oid: 16, arrayOID: 1000)
    static let bytea = PostgresType(name: "bytea", oid: 17, arrayOID: 1001)
    static let int8 = PostgresType(name: "int8", oid: 20, arrayOID: 1016)
    static let int2 = PostgresType(name: "int2", oid: 21, arrayOID: 1005)
    static let int4 = PostgresType(name: "int4", oid: 23, arrayOID: 1007)
    static let text = PostgresType(name: "text", oid: 25, arrayOID: 1009)
    static let float8 = PostgresType(name: "float8", oid: 701, arrayOID: 1022)
    static let timestamptz = PostgresType(name: "timestamptz", oid: 1184, arrayOID: 1185)
    static let interval = PostgresType(name: "interval", oid: 1186, arrayOID: 1187)
    static let uuid = PostgresType(name: "uuid", oid: 2950, arrayOID: 2951)
    static let jsonb = PostgresType(name: "jsonb", oid: 3802, arrayOID: 3807)

    var array: PostgresType { PostgresType(name: "\(name)[]", oid: arrayOID, arrayOID: 0) }
}

/// Object ids of types that are only decoded, and all type names for error messages.
enum PostgresOID {
    static let char: UInt32 = 18
    static let name: UInt32 = 19
    static let oid: UInt32 = 26
    static let json: UInt32 = 114
    static let float4: UInt32 = 700
    static let unknown: UInt32 = 705
    static let bpchar: UInt32 = 1042
    static let varchar: UInt32 = 1043
    static let timestamp: UInt32 = 1114
    static let numeric: UInt32 = 1700
    /// The first object id of user-defined types, such as enums and citext.
    static let firstUserDefined: UInt32 = 16384

    private static let written: [PostgresType] = [
        .bool, .bytea, .int8, .int2, .int4, .text, .float8, .timestamptz, .interval, .uuid, .jsonb,
    ]

    static func describe(_ oid: UInt32) -> String {
        if let type = written.first(where: { $0.oid == oid }) { return type.name }
        if let type = written.first(where: { $0.arrayOID == oid }) { return type.array.name }
        return switch oid {
        case char: "\"char\""
        case name: "name"
        case Self.oid: "oid"
        case json: "json"
        case float4: "float4"
        case bpchar: "char(n)"
        case varchar: "varchar"
        case timestamp: "timestamp without time zone"
        case numeric: "numeric"
        case 1082: "date"
        case 1083: "time"
        case 2278: "void"
        default: "the type with oid \(oid)"
        }
    }
}
