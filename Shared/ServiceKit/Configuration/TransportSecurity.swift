import AMQP
import Postgres

/// Rejects broker and database URLs without verified TLS.
///
/// The broker needs `amqps://`, the database `sslmode=verify-full`. Exempt are local hosts (`localhost`, `127.0.0.0/8`,
/// `::1`, Unix sockets), and all hosts if `HELIOGRAPH_ALLOW_PLAINTEXT` is set.
enum TransportSecurity {
    /// Returns a line for each rejected URL of `values`. Malformed URLs are reported by other checks.
    static func problems(in values: [String: String], of keys: [ConfigurationKey]) -> [String] {
        guard SettingValue.boolean(values[ConfigurationKey.allowPlaintext.name] ?? "no") != true else { return [] }
        return [ConfigurationKey.amqpURL, .databaseURL].filter(keys.contains).compactMap { key in
            values[key.name].flatMap { problem(with: $0, for: key) }
        }
    }

    /// Returns the problem with the URL of `key`, or `nil`.
    static func problem(with url: String, for key: ConfigurationKey) -> String? {
        switch key {
        case .amqpURL: (try? AMQPConfiguration(url: url, connectionName: "")).flatMap { broker($0.plaintextHosts) }
        case .databaseURL:
            (try? PostgresConfiguration(url: url, applicationName: "")).flatMap { database($0.unverifiedHosts) }
        default: nil
        }
    }

    private static func broker(_ hosts: [String]) -> String? {
        guard !hosts.isEmpty else { return nil }
        return "\(ConfigurationKey.amqpURL.name): the connection to \(hosts.joined(separator: ", ")) has no TLS; use "
            + "amqps://, or set \(permission)"
    }

    private static func database(_ hosts: [String]) -> String? {
        guard !hosts.isEmpty else { return nil }
        return
            "\(ConfigurationKey.databaseURL.name): the certificate of \(hosts.joined(separator: ", ")) is not "
            + "verified; add ?sslmode=verify-full&sslrootcert=FILE to the URL, or set \(permission)"
    }

    private static var permission: String {
        "\(ConfigurationKey.allowPlaintext.name)=yes if the network is trusted"
    }
}
