import AMQP
import Postgres

/// Refuses addresses whose passwords, device tokens and texts would cross a network unprotected.
///
/// The broker needs `amqps://`, the database `sslmode=verify-full`. Exempt are this machine (`localhost`, `127.0.0.0/8`,
/// `::1`) and Unix sockets, and everything where `HELIOGRAPH_ALLOW_PLAINTEXT` is set.
enum TransportSecurity {
    /// One line for each address of `values` that is refused. An address that cannot be read is another check's.
    static func problems(in values: [String: String], of keys: [ConfigurationKey]) -> [String] {
        guard SettingValue.boolean(values[ConfigurationKey.allowPlaintext.name] ?? "no") != true else { return [] }
        return [ConfigurationKey.amqpURL, .databaseURL].filter(keys.contains).compactMap { key in
            values[key.name].flatMap { problem(with: $0, for: key) }
        }
    }

    /// Why the URL of `key` is refused, or `nil` if it is not.
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
        return "\(ConfigurationKey.amqpURL.name): \(hosts.joined(separator: ", ")) would be reached without TLS; use "
            + "amqps://, or set \(permission)"
    }

    private static func database(_ hosts: [String]) -> String? {
        guard !hosts.isEmpty else { return nil }
        return
            "\(ConfigurationKey.databaseURL.name): \(hosts.joined(separator: ", ")) would be reached without checking "
            + "its certificate; add ?sslmode=verify-full&sslrootcert=FILE to the URL, or set \(permission)"
    }

    private static var permission: String {
        "\(ConfigurationKey.allowPlaintext.name)=yes where the network between is trusted"
    }
}
