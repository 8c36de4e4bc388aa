internal import CPostgres

/// How statements reach the server.
package enum PostgresStatementMode: Hashable, Sendable {
    /// Parsed and planned once for each connection and text.
    case prepared
    /// Parsed each time: for a pooler in transaction mode that does not track prepared statements (pgbouncer < 1.21).
    case unnamed
}

/// Where the database is and how long anything may take.
///
/// Takes every parameter libpq knows in its URL (several hosts, `sslmode`, `sslrootcert`, …) and adds what libpq and the
/// server would otherwise leave unlimited: connecting, a statement, a lock, an idle transaction, a dead peer. What the
/// URL says itself wins.
package struct PostgresConfiguration: Sendable {
    /// Connections of one pool. Over all processes their sum must stay below the server's `max_connections`.
    package var poolSize: Int
    /// How long a caller waits for a free connection.
    package var checkoutTimeout: Duration
    /// How long the server lets a statement run. The client itself waits half a second more and then throws the
    /// connection away, since a frozen server does not enforce anything.
    package var statementTimeout: Duration
    /// How long the server lets a statement wait for a lock.
    package var lockTimeout: Duration = .seconds(1)
    package var statementMode: PostgresStatementMode = .prepared
    /// Returns the URL as it is now; `nil` for a URL that never changes, and while it cannot be read. Called on connection
    /// threads, before each connection. A URL with a fault leaves the earlier one in force.
    package var currentURL: (@Sendable () -> String?)?
    package let applicationName: String
    /// libpq's keywords as the URL sets them; the password is among them.
    private var keywords: [String: String]

    /// - Parameter url: `postgresql://user:password@host[:port][,host2…]/database[?parameter=value&…]`, percent-encoded.
    package init(
        url: String, poolSize: Int = 4, checkoutTimeout: Duration = .seconds(1),
        statementTimeout: Duration = .seconds(5), applicationName: String
    ) throws(PostgresError) {
        guard poolSize > 0, checkoutTimeout > .zero, statementTimeout > .zero else {
            throw PostgresError(
                .invalidConfiguration, operation: "configuration",
                detail: "the pool's size and all time-outs must be greater than zero")
        }
        self.poolSize = poolSize
        self.checkoutTimeout = checkoutTimeout
        self.statementTimeout = statementTimeout
        self.applicationName = applicationName
        keywords = try Self.parse(url)
    }

    package var database: String { keywords["dbname"] ?? keywords["user"] ?? "" }

    /// The configuration with the URL as it is now.
    func refreshed() -> PostgresConfiguration {
        guard let url = currentURL?(), let current = try? Self.parse(url) else { return self }
        var copy = self
        copy.keywords = current
        return copy
    }

    /// Whether both say the same to libpq.
    func connectsLike(_ other: PostgresConfiguration) -> Bool { keywords == other.keywords }

    /// The same server and user, another database.
    package func with(database: String) -> PostgresConfiguration {
        var copy = self
        copy.keywords["dbname"] = database
        copy.currentURL = nil
        return copy
    }

    /// The same user and database, on another server.
    package func with(host: String, port: Int) -> PostgresConfiguration {
        var copy = self
        copy.keywords["host"] = host
        copy.keywords["hostaddr"] = nil
        copy.keywords["port"] = String(port)
        copy.currentURL = nil
        return copy
    }

    var statementTimeoutInMilliseconds: Int { Self.milliseconds(statementTimeout) }

    private static func milliseconds(_ duration: Duration) -> Int { max(1, Int(duration / .milliseconds(1))) }

    /// What libpq connects with.
    var connectionKeywords: [String: String] {
        let milliseconds = Self.milliseconds
        let options = [
            "statement_timeout=\(statementTimeoutInMilliseconds)",
            "lock_timeout=\(milliseconds(lockTimeout))",
            "idle_in_transaction_session_timeout=10000",
            // A statement whose client went away ends by itself.
            "client_connection_check_interval=1000",
        ]
        let defaults = [
            "application_name": applicationName, "connect_timeout": "3", "target_session_attrs": "read-write",
            "keepalives_idle": "15", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "10000",
        ]
        var result = keywords.merging(defaults) { given, _ in given }
        // Of two settings of one name the server takes the last, so the URL's own come after ours.
        result["options"] = (options.map { "-c \($0)" } + [keywords["options"]].compactMap { $0 }).joined(
            separator: " ")
        result["client_encoding"] = "UTF8"
        return result
    }

    /// libpq's message is not passed on: it quotes the URL, and that holds the password.
    private static func parse(_ url: String) throws(PostgresError) -> [String: String] {
        var message: UnsafeMutablePointer<CChar>?
        defer { PQfreemem(message) }
        let isURL = url.hasPrefix("postgresql://") || url.hasPrefix("postgres://")
        guard isURL, let options = PQconninfoParse(url, &message) else {
            throw PostgresError(
                .invalidConfiguration, operation: "configuration",
                detail: "the database URL cannot be read. It has the form "
                    + "postgresql://user:password@host:port/database?parameter=value, with every reserved character "
                    + "percent-encoded and with parameters that libpq knows")
        }
        defer { PQconninfoFree(options) }
        var keywords: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { keywords[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        return keywords
    }
}

extension PostgresConfiguration {
    /// The servers that are reached over a network without their certificate being checked; empty when all are on this
    /// machine (`localhost`, `127.0.0.0/8`, `::1`, Unix sockets) and with `sslmode=verify-full`. Names are not resolved.
    package var unverifiedHosts: [String] {
        guard keywords["sslmode"] != "verify-full" else { return [] }
        // An address wins over the name at the same place (libpq, 34.1.2).
        let addresses = Self.list(keywords["hostaddr"])
        let names = Self.list(keywords["host"])
        let hosts = (0..<max(addresses.count, names.count)).map { place in
            let address = place < addresses.count ? addresses[place] : ""
            return address.isEmpty && place < names.count ? names[place] : address
        }
        return hosts.filter { !Self.isOnThisMachine($0) }
    }

    private static func list(_ value: String?) -> [String] {
        value.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
    }

    /// An empty host, a path and an abstract name (`@…`) are Unix sockets.
    private static func isOnThisMachine(_ host: String) -> Bool {
        if host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") { return true }
        if ["localhost", "::1"].contains(host.lowercased()) { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

extension PostgresConfiguration: CustomStringConvertible, CustomReflectable {
    /// Without the password.
    package var description: String {
        let ports = (keywords["port"] ?? "").split(separator: ",", omittingEmptySubsequences: false)
        let hosts = (keywords["host"] ?? "").split(separator: ",", omittingEmptySubsequences: false)
        // One port serves all hosts, or each has its own.
        let servers = hosts.enumerated().map { index, host in
            let port = ports.count == 1 ? ports[0] : ports.dropFirst(index).first ?? ""
            return port.isEmpty ? String(host) : "\(host):\(port)"
        }
        return "\(keywords["user"] ?? "")@\(servers.joined(separator: ","))/\(database)"
    }

    package var customMirror: Mirror { Mirror(self, children: ["target": description]) }
}
