internal import CPostgres

/// The database's address and the time-outs of connections and statements.
///
/// The URL accepts every libpq parameter (several hosts, `sslmode`, `sslrootcert`, …). Adds time-outs that libpq and
/// the server leave unlimited: connect, statement, lock, idle transaction and dead peer. Values of the URL take
/// precedence.
package struct PostgresConfiguration: Sendable {
    /// The pool's maximum connections. The sum of all processes must stay below the server's `max_connections`.
    package var poolSize: Int
    /// The longest wait for a free connection.
    package var checkoutTimeout: Duration
    /// The server's `statement_timeout`. The client closes the connection half a second later, in case the server
    /// hangs.
    package var statementTimeout: Duration
    /// The server's `lock_timeout`.
    package var lockTimeout: Duration = .seconds(1)
    /// Returns the current URL; nil if it never changes or cannot be read. Called on connection threads before each
    /// connection. If the URL is malformed, the previous one stays in use.
    package var currentURL: (@Sendable () -> String?)?
    package let applicationName: String
    /// libpq's keywords from the URL, including the password.
    private var keywords: [String: String]

    /// - Parameter url: `postgresql://user:password@host[:port][,host2…]/database[?parameter=value&…]`,
    ///   percent-encoded.
    package init(
        url: String, poolSize: Int = 4, checkoutTimeout: Duration = .seconds(1),
        statementTimeout: Duration = .seconds(5), applicationName: String
    ) throws(PostgresError) {
        guard poolSize > 0, checkoutTimeout > .zero, statementTimeout > .zero else {
            throw PostgresError(
                .invalidConfiguration, operation: "configuration",
                detail: "the pool size and all time-outs must be greater than zero")
        }
        self.poolSize = poolSize
        self.checkoutTimeout = checkoutTimeout
        self.statementTimeout = statementTimeout
        self.applicationName = applicationName
        keywords = try Self.parse(url)
    }

    package var database: String { keywords["dbname"] ?? keywords["user"] ?? "" }

    /// Returns the configuration with the current URL.
    func refreshed() -> PostgresConfiguration {
        guard let url = currentURL?(), let current = try? Self.parse(url) else { return self }
        var copy = self
        copy.keywords = current
        return copy
    }

    /// Whether both have the same libpq keywords.
    func connectsLike(_ other: PostgresConfiguration) -> Bool { keywords == other.keywords }

    /// Returns the configuration with another database.
    package func with(database: String) -> PostgresConfiguration {
        var copy = self
        copy.keywords["dbname"] = database
        copy.currentURL = nil
        return copy
    }

    /// Returns the configuration with another server.
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

    /// The keywords to pass to libpq.
    var connectionKeywords: [String: String] {
        let milliseconds = Self.milliseconds
        let options = [
            "statement_timeout=\(statementTimeoutInMilliseconds)",
            "lock_timeout=\(milliseconds(lockTimeout))",
            "idle_in_transaction_session_timeout=10000",
            // The server cancels a statement within a second after its client disconnected.
            "client_connection_check_interval=1000",
        ]
        let defaults = [
            "application_name": applicationName, "connect_timeout": "3", "target_session_attrs": "read-write",
            "keepalives_idle": "15", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "10000",
        ]
        var result = keywords.merging(defaults) { given, _ in given }
        // The last setting of a name wins, so the URL's options come last.
        result["options"] = (options.map { "-c \($0)" } + [keywords["options"]].compactMap { $0 }).joined(
            separator: " ")
        result["client_encoding"] = "UTF8"
        return result
    }

    /// Parses a URL. The error omits libpq's message, which quotes the URL with its password.
    private static func parse(_ url: String) throws(PostgresError) -> [String: String] {
        var message: UnsafeMutablePointer<CChar>?
        defer { PQfreemem(message) }
        let isURL = url.hasPrefix("postgresql://") || url.hasPrefix("postgres://")
        guard isURL, let options = PQconninfoParse(url, &message) else {
            throw PostgresError(
                .invalidConfiguration, operation: "configuration",
                detail: "the database URL is invalid; expected "
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
    /// The hosts whose certificates are not verified; empty with `sslmode=verify-full`. Local hosts (`localhost`,
    /// `127.0.0.0/8`, `::1`, Unix sockets) are exempt. Names are not resolved.
    package var unverifiedHosts: [String] {
        guard keywords["sslmode"] != "verify-full" else { return [] }
        // `hostaddr` takes precedence over the `host` at the same position (libpq, 34.1.2).
        let addresses = Self.list(keywords["hostaddr"])
        let names = Self.list(keywords["host"])
        let hosts = (0..<max(addresses.count, names.count)).map { index in
            let address = index < addresses.count ? addresses[index] : ""
            return address.isEmpty && index < names.count ? names[index] : address
        }
        return hosts.filter { !Self.isOnThisMachine($0) }
    }

    private static func list(_ value: String?) -> [String] {
        value.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
    }

    /// Whether a host is local. An empty host, a path and an abstract name (`@…`) are Unix sockets.
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
        // The URL has one port for all hosts, or one for each.
        let servers = hosts.enumerated().map { index, host in
            let port = ports.count == 1 ? ports[0] : ports.dropFirst(index).first ?? ""
            return port.isEmpty ? String(host) : "\(host):\(port)"
        }
        return "\(keywords["user"] ?? "")@\(servers.joined(separator: ","))/\(database)"
    }

    package var customMirror: Mirror { Mirror(self, children: ["target": description]) }
}
