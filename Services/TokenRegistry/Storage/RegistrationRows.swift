import FoundationEssentials
import Postgres
import PushProtocol

/// A registration with its state: what an operator sees.
struct RegistrationRecord: Hashable, Sendable {
    var registration: Registration
    var state: RegistrationState
    var reason: String?
    var changedAt: Date
}

extension Registration {
    /// Reads a row; what the table's constraints hold cannot fail here but by a schema this build does not know.
    init(_ row: PostgresRow) throws(PostgresError) {
        func value<Value>(_ column: String, _ parse: (String) -> Value?) throws(PostgresError) -> Value {
            guard let value = parse(try row.decode(String.self, at: column)) else {
                throw PostgresError(column: column, expected: "\(Value.self)")
            }
            return value
        }
        self.init(
            device: try row.decode(UUID.self, at: "device_id"),
            app: try value("app", AppID.init(rawValue:)),
            user: try value("user_id", UserID.init(rawValue:)),
            provider: try value("provider", Provider.init(rawValue:)),
            environment: try value("environment", ProviderEnvironment.init(rawValue:)),
            token: DeviceToken(secret: try row.decode(String.self, at: "token")),
            registeredAt: Timestamp(try row.decode(Date.self, at: "registered_at")))
    }
}

extension RegistrationRecord {
    init(_ row: PostgresRow) throws(PostgresError) {
        guard let state = RegistrationState(rawValue: try row.decode(String.self, at: "state")) else {
            throw PostgresError(column: "state", expected: "a known state")
        }
        self.init(
            registration: try Registration(row), state: state,
            reason: try row.decode(String?.self, at: "state_reason"),
            changedAt: try row.decode(Date.self, at: "state_changed_at"))
    }
}

extension PostgresError {
    /// A value that the table's constraints forbid: the schema is one that this build does not know.
    fileprivate init(column: String, expected: String) {
        self.init(.decoding, operation: "registry.registration", detail: "column “\(column)”: expected \(expected)")
    }
}
