package import Primitives

/// Broker address, credentials, time-outs and backoff of a connection.
///
/// Several connections can share one configuration. Its description contains no password.
package struct AMQPConfiguration: Sendable {
    /// One broker address. Addresses are tried in turn.
    package struct Host: Hashable, Sendable {
        package let name: String
        package let port: Int
    }

    private var address: AMQPAddress
    package var hosts: [Host] { address.hosts }
    package var virtualHost: String { address.virtualHost }
    package var user: String { address.user }
    var password: Secret { address.password }
    package var usesTLS: Bool { address.usesTLS }
    /// A PEM file with the trusted authorities; nil for the system's.
    package let caFile: String?
    /// The connection name in the broker's connection list.
    package let connectionName: String
    /// The proposed heartbeat interval. The smaller of both sides' values applies.
    package let heartbeat: Duration
    package var timeouts = Timeouts()
    /// The waits between attempts to connect or subscribe.
    package var backoff = Backoff(base: .milliseconds(500), cap: .seconds(30))
    /// The jitter of ``backoff``: returns a number in 0..<1. Called once per wait; seeded in tests.
    package var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
    /// Returns the current URL; `nil` for a fixed URL, and while the source is unreadable. Called on connection
    /// threads, before each attempt and about once a second between attempts. An invalid URL leaves the previous one in
    /// force.
    package var currentURL: (@Sendable () -> String?)?

    /// Time-outs of the steps of a connection.
    package struct Timeouts: Hashable, Sendable {
        /// TCP and TLS for one address. The login has ``handshake``.
        package var connect: Duration = .seconds(5)
        package var handshake: Duration = .seconds(10)
        /// One request to the broker. The connection is dropped afterwards.
        package var call: Duration = .seconds(10)
        /// How long graceful shutdown waits for confirms and settlements.
        package var drain: Duration = .seconds(10)
        /// How long sent data may stay unacknowledged by the peer's TCP. Not applied during a broker alarm.
        package var unsent: Duration = .seconds(30)
        /// How long a publisher waits for confirms until it opens a new channel.
        var confirms = ConfirmWatch.Limits()

        package init() {}
    }

    /// - Parameter url: `amqp(s)://user:password@host[:port][,host2[:port]…]/vhost`, percent-encoded where needed.
    ///   Without a path, or with an empty one, the virtual host is `/`. Ports default to 5672 and 5671.
    package init(
        url: String, connectionName: String, caFile: String? = nil, heartbeat: Duration = .seconds(20)
    ) throws(AMQPError) {
        let address = try AMQPAddress(parsing: url)
        guard heartbeat >= .seconds(1), heartbeat <= .seconds(600) else {
            throw AMQPError(.configuration, operation: "AMQP heartbeat", detail: "must be 1 to 600 seconds")
        }
        self.address = address
        self.caFile = caFile
        self.connectionName = connectionName
        self.heartbeat = heartbeat
    }
}

extension AMQPConfiguration {
    /// Applies user, password, hosts and virtual host of ``currentURL``.
    ///
    /// - Returns: Whether any of them changed.
    mutating func refresh() -> Bool {
        guard let url = currentURL?(), let current = try? AMQPAddress(parsing: url), current != address else {
            return false
        }
        address = current
        return true
    }

    /// The configuration with the current URL.
    func refreshed() -> AMQPConfiguration {
        var copy = self
        _ = copy.refresh()
        return copy
    }

    /// The hosts reached over a network without TLS, as `host:port`; empty when all are local.
    package var plaintextHosts: [String] {
        usesTLS ? [] : hosts.filter { !Loopback.contains($0.name) }.map { "\($0)" }
    }
}

enum Loopback {
    /// Whether `host` is `localhost`, in `127.0.0.0/8`, or `::1`. Does not resolve names.
    static func contains(_ host: String) -> Bool {
        if ["localhost", "::1"].contains(host.lowercased()) { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

extension AMQPConfiguration: CustomStringConvertible {
    package var description: String {
        let list = hosts.map { "\($0.name):\($0.port)" }.joined(separator: ",")
        return "\(usesTLS ? "amqps" : "amqp")://\(user)@\(list)/\(virtualHost == "/" ? "" : virtualHost)"
    }
}

/// Text that is hidden in descriptions, dumps and reflection.
struct Secret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let text: String

    var description: String { "•••" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}
