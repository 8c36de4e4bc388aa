/// Where the broker is, who we are there, and how patient the connection is.
///
/// One configuration serves any number of connections. Printing it shows no password.
package struct AMQPConfiguration: Sendable {
    /// One address of the broker. Tried in turn.
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
    /// A PEM file of the authorities to trust; the system's when nil.
    package let caFile: String?
    /// What an operator sees in the broker's list of connections.
    package let connectionName: String
    /// What is proposed to the broker; the smaller of both sides' counts.
    package let heartbeat: Duration
    package var timeouts = Timeouts()
    package var backoff = BackoffPolicy()
    /// Returns the URL as it is now; `nil` for a URL that never changes, and while it cannot be read. Called on connection
    /// threads, before each try and about once a second between tries. A URL with a fault leaves the earlier one in force.
    package var currentURL: (@Sendable () -> String?)?

    /// How long each step may take.
    package struct Timeouts: Hashable, Sendable {
        /// TCP (and TLS) for one address, then the login.
        package var connect: Duration = .seconds(5)
        package var handshake: Duration = .seconds(10)
        /// One question to the broker. The connection is dropped when it passes.
        package var call: Duration = .seconds(10)
        /// What a graceful shutdown waits for confirms, or for deliveries in hand to be settled.
        package var drain: Duration = .seconds(10)
        /// How long sent data may wait for a peer that takes none. An alarm at the broker lifts the limit as long as it lasts.
        package var unsent: Duration = .seconds(30)

        package init() {}
    }

    /// - Parameter url: `amqp(s)://user:password@host[:port][,host2[:port]…]/vhost`, percent-encoded where needed.
    ///   Without a path, and with an empty one, the virtual host is `/`. Ports default to 5672 and 5671.
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
    /// Takes over a new user, password, host or virtual host of ``currentURL``.
    ///
    /// - Returns: whether any of them is another one than before.
    mutating func refresh() -> Bool {
        guard let url = currentURL?(), let current = try? AMQPAddress(parsing: url), current != address else {
            return false
        }
        address = current
        return true
    }

    /// The configuration with the URL as it is now.
    func refreshed() -> AMQPConfiguration {
        var copy = self
        _ = copy.refresh()
        return copy
    }

    /// The hosts that are reached without TLS over a network, as `host:port`; empty when all are on this machine.
    package var plaintextHosts: [String] {
        usesTLS ? [] : hosts.filter { !Loopback.contains($0.name) }.map { "\($0)" }
    }
}

/// Names and addresses of this machine.
enum Loopback {
    /// `localhost`, `127.0.0.0/8` and `::1`. Names are not resolved.
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

/// Text that neither prints nor shows in a reflection.
struct Secret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let text: String

    var description: String { "•••" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}
