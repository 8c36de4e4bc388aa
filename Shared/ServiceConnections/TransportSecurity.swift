import AMQP
import Postgres
import ServiceKit

/// Rejects broker and database URLs without verified TLS.
///
/// The broker needs `amqps://`, the database `sslmode=verify-full`. Exempt are local hosts (`localhost`, `127.0.0.0/8`,
/// `::1`, Unix sockets), and all hosts if `HELIOGRAPH_ALLOW_PLAINTEXT` is set.
package enum TransportSecurity {
    /// Returns the problem with a broker URL, or `nil`. A malformed URL is reported by other checks.
    @Sendable static func brokerProblem(_ url: String, _ values: [String: String]) -> String? {
        guard !isPlaintextAllowed(values) else { return nil }
        return (try? AMQPConfiguration(url: url, connectionName: "")).flatMap { broker($0.plaintextHosts) }
    }

    /// Returns the problem with a database URL, or `nil`. A malformed URL is reported by other checks.
    @Sendable static func databaseProblem(_ url: String, _ values: [String: String]) -> String? {
        guard !isPlaintextAllowed(values) else { return nil }
        return (try? PostgresConfiguration(url: url, applicationName: "")).flatMap { database($0.unverifiedHosts) }
    }

    /// - Parameter values: the settings by name.
    package static func isPlaintextAllowed(_ values: [String: String]) -> Bool {
        SettingValue.boolean(values[ConfigurationKey.allowPlaintext.name] ?? "no") == true
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
