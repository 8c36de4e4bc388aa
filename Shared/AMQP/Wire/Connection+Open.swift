internal import CRabbitMQ
internal import Glibc

extension Connection {
    /// The proposed `frame_max`. RabbitMQ 4.1 and later refuse less than 8192.
    private static let frameMax: Int32 = 131_072
    private static let channelMax: Int32 = 8

    /// Connects to one host, logs in, and opens the working channel.
    ///
    /// Blocks for at most the connect and handshake time-outs, plus the time of `getaddrinfo`.
    static func open(
        _ host: AMQPConfiguration.Host, _ configuration: AMQPConfiguration, name: String, heartbeat: Duration? = nil
    ) throws(AMQPError) -> Connection {
        guard let state = amqp_new_connection() else {
            throw AMQPError(.unreachable, operation: "connect to \(host)", detail: "out of memory")
        }
        var connection = Connection(state: state, peer: "\(host)")
        try connection.connect(host, configuration)
        connection.tuneSocket(unsent: configuration.timeouts.unsent)
        try connection.login(configuration, name: name, heartbeat: heartbeat ?? configuration.heartbeat)
        try connection.openChannel(channel)
        return connection
    }

    // MARK: - Sockets

    private func connect(_ host: AMQPConfiguration.Host, _ configuration: AMQPConfiguration) throws(AMQPError) {
        if configuration.usesTLS {
            // By name, because the certificate is verified against it.
            let secure = try secureSocket(configuration)
            do throws(AMQPError) {
                try open(secure, host.name, host.port, configuration.timeouts.connect)
            } catch {
                guard error.code == .unreachable, let address = try Resolver.addresses(of: host).first else {
                    throw error
                }
                throw Self.explained(error, address, host.port)
            }
            return
        }
        guard let socket = amqp_tcp_socket_new(state) else {
            throw AMQPError(.unreachable, operation: "connect to \(peer)", detail: "out of memory")
        }
        // Address by address: librabbitmq does not try the next address after a time-out
        // (Shared/Messaging/BrokerFacts.md §2.2).
        var last: AMQPError?
        for address in try Resolver.addresses(of: host) {
            do throws(AMQPError) {
                return try open(socket, address, host.port, configuration.timeouts.connect)
            } catch {
                last = Self.explained(error, address, host.port)
            }
        }
        throw last ?? AMQPError(.unreachable, operation: "connect to \(peer)", detail: "the name has no address")
    }

    /// The error with the system's reason instead of the library's, if the system has one.
    private static func explained(_ error: AMQPError, _ address: String, _ port: Int) -> AMQPError {
        guard error.code == .unreachable, let reason = ConnectProbe.failure(address, port: port) else { return error }
        return AMQPError(error.code, operation: error.operation, detail: reason)
    }

    private func open(
        _ socket: OpaquePointer, _ name: String, _ port: Int, _ timeout: Duration
    ) throws(AMQPError) {
        var timeout = timeval(timeout)
        let status = name.withCString { amqp_socket_open_noblock(socket, $0, Int32(port), &timeout) }
        guard status < 0 else { return }
        let error = AMQPError(status: status, operation: "connect to \(peer)")
        switch error.code {
        case .tls: throw error
        default: throw AMQPError(.unreachable, operation: error.operation, detail: error.detail)
        }
    }

    private func secureSocket(_ configuration: AMQPConfiguration) throws(AMQPError) -> OpaquePointer {
        guard TLSLibrary.isReady, let socket = amqp_ssl_socket_new(state) else {
            throw AMQPError(.tls, operation: "connect to \(peer)", detail: "the TLS library failed to initialize")
        }
        amqp_ssl_socket_set_verify_peer(socket, 1)
        amqp_ssl_socket_set_verify_hostname(socket, 1)
        try check(amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST), "ask for TLS 1.2 or later")
        if let file = configuration.caFile {
            let status = file.withCString { amqp_ssl_socket_set_cacert(socket, $0) }
            guard status >= 0 else {
                throw AMQPError(.tls, operation: "read the trusted authorities", detail: "no certificates in \(file)")
            }
        } else if shim_amqp_ssl_trust_system(socket) != 1 {
            throw AMQPError(.tls, operation: "connect to \(peer)", detail: "the system's authorities cannot be read")
        }
        return socket
    }

    /// Lets the kernel detect a dead peer too: after unacknowledged data for the configured time, or silence for 15 + 3
    /// × 5 s.
    private func tuneSocket(unsent: Duration) {
        limitUnsent(unsent)
        set(SOL_SOCKET, SO_KEEPALIVE, 1)
        set(Int32(IPPROTO_TCP), TCP_KEEPIDLE, 15)
        set(Int32(IPPROTO_TCP), TCP_KEEPINTVL, 5)
        set(Int32(IPPROTO_TCP), TCP_KEEPCNT, 3)
    }

    /// Sets `TCP_USER_TIMEOUT`, the limit for unacknowledged data; `nil` for no limit. Linux applies it also to a live
    /// peer with a full receive buffer, such as a broker with an alarm (tcp(7)).
    func limitUnsent(_ limit: Duration?) {
        set(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(clamping: Int((limit ?? .zero) / .milliseconds(1))))
    }

    /// Ignores errors: heartbeats detect a dead peer too, but later.
    private func set(_ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        _ = setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    // MARK: - Login

    private mutating func login(
        _ configuration: AMQPConfiguration, name: String, heartbeat: Duration
    ) throws(AMQPError) {
        var handshake = timeval(configuration.timeouts.handshake)
        try check(amqp_set_handshake_timeout(state, &handshake), "set a time-out")
        var call = timeval(configuration.timeouts.call)
        try check(amqp_set_rpc_timeout(state, &call), "set a time-out")

        // RabbitMQ sends cancel and alarm notifications only to clients with these capabilities (RabbitMQ: Consumer
        // Cancel Notification; Blocked Connection Notifications).
        arena.reset()
        var properties = arena.table([
            "product": "Heliograph", "connection_name": .text(name),
            "capabilities": .table(["consumer_cancel_notify": true, "connection.blocked": true]),
        ])
        let state = state
        let reply = configuration.virtualHost.withCString { virtualHost in
            configuration.user.withCString { user in
                configuration.password.text.withCString { password in
                    shim_amqp_login_plain(
                        state, virtualHost, Self.channelMax, Self.frameMax, Int32(heartbeat.components.seconds),
                        &properties, user, password)
                }
            }
        }
        do throws(AMQPError) {
            try check(reply, on: 0, "log in to \(peer) as \(configuration.user)")
        } catch {
            switch error.code {
            case .connectionClosed(let code):
                throw AMQPError(.refused(replyCode: code), operation: error.operation, detail: error.detail)
            default: throw error
            }
        }
    }

    mutating func openChannel(_ channel: amqp_channel_t) throws(AMQPError) {
        _ = amqp_channel_open(state, channel)
        try check(amqp_get_rpc_reply(state), on: channel, "open a channel to \(peer)")
    }
}

extension AMQPConfiguration.Host: CustomStringConvertible {
    package var description: String { name.contains(":") ? "[\(name)]:\(port)" : "\(name):\(port)" }
}

extension timeval {
    init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self.init(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
    }
}

/// Initializes the library's OpenSSL once per process.
private enum TLSLibrary {
    static let isReady = amqp_initialize_ssl_library() >= 0
}
