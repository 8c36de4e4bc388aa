import Crypto
import FoundationEssentials
import PushProtocol

/// The vhost, users and policies for RabbitMQ's `load_definitions`. Each user has only the permissions it needs; stages
/// and upstream users publish only with their own routing keys.
struct BrokerDefinitions {
    static let virtualHost = "heliograph"
    static let administrator = "administrator"

    struct User {
        let name: String
        let permissions: BusPermissions
        /// The routing keys it may publish with, by topic exchange.
        let topics: [TopicPermission]
    }

    let users: [User]

    init(apps: [AppID]) {
        let stages = BusRole.allCases.filter { $0 != .upstream }.map {
            User(name: $0.rawValue, permissions: $0.permissions, topics: $0.topicPermissions)
        }
        let upstream = apps.map { app in
            User(
                name: "upstream-\(app)", permissions: BusRole.upstreamPermissions(of: app),
                topics: BusRole.upstreamTopicPermissions(of: app))
        }
        let everything = BusPermissions(configure: ".*", write: ".*", read: ".*")
        users = stages + upstream + [User(name: Self.administrator, permissions: everything, topics: [])]
    }

    /// The JSON document. `password` returns a user's password.
    func json(password: (String) throws -> String) rethrows -> JSONValue {
        [
            "vhosts": [["name": .string(Self.virtualHost)]],
            "users": .array(try users.map { $0.json(password: try password($0.name)) }),
            "permissions": .array(users.map(\.permissionsJSON)),
            "topic_permissions": .array(users.flatMap(\.topicsJSON)),
            "policies": .array(Topology.policies.map(\.json)),
        ]
    }
}

extension BrokerDefinitions.User {
    fileprivate func json(password: String) -> JSONValue {
        [
            "name": .string(name),
            "password_hash": .string(RabbitMQPassword.hash(password)),
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": name == BrokerDefinitions.administrator ? ["administrator"] : [],
        ]
    }

    fileprivate var permissionsJSON: JSONValue {
        [
            "user": .string(name), "vhost": .string(BrokerDefinitions.virtualHost),
            "configure": .string(permissions.configure), "write": .string(permissions.write),
            "read": .string(permissions.read),
        ]
    }

    fileprivate var topicsJSON: [JSONValue] {
        topics.map {
            [
                "user": .string(name), "vhost": .string(BrokerDefinitions.virtualHost),
                "exchange": .string($0.exchange.name), "write": .string($0.write), "read": "^$",
            ]
        }
    }
}

extension Topology.Policy {
    fileprivate var json: JSONValue {
        [
            "vhost": .string(BrokerDefinitions.virtualHost), "name": .string(name), "pattern": .string(pattern),
            "apply-to": "queues", "priority": .int(priority), "definition": .object(definition.mapValues(\.json)),
        ]
    }
}

extension Topology.Argument {
    /// The argument in the broker's definitions.
    var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .number(let number): .int(number)
        }
    }
}

/// RabbitMQ's password hash: four bytes of salt, then SHA-256 of salt and password, in Base64
/// (rabbitmq.com/docs/passwords).
enum RabbitMQPassword {
    static func hash(_ password: String, salt: [UInt8] = .init(SymmetricKey(size: .init(bitCount: 32)))) -> String {
        let digest = SHA256.hash(data: salt + Array(password.utf8))
        return Data(salt + Array(digest)).base64EncodedString()
    }
}

extension [UInt8] {
    fileprivate init(_ key: SymmetricKey) { self = key.withUnsafeBytes { Array($0) } }
}
