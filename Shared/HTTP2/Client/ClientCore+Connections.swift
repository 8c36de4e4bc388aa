import Logging
import NIOCore
import NIOPosix

/// Opening connections and handling their events.
extension ClientCore {
    func connect(_ id: ConnectionPool.ID) {
        let connection = ClientChannelHandler(id: id, core: self)
        connections[id] = connection
        let bound = NIOLoopBound(connection, eventLoop: eventLoop)
        // NIO resolves the name and races its addresses (Happy Eyeballs) for each connection; it caches neither.
        bootstrap().connect(host: endpoint.host, port: endpoint.port).whenComplete { result in
            let connection = bound.value
            switch result {
            case .success(let channel): connection.core.connected(connection, channel)
            case .failure(let error): connection.core.connectFailed(connection, error)
            }
        }
    }

    private func bootstrap() -> ClientBootstrap {
        var bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(TimeAmount(configuration.connectTimeout))
            .channelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(ChannelOptions.socketOption(.so_keepalive), value: 1)
        if let mayConnect {
            // In the channel of each address that the bootstrap tries.
            bootstrap = bootstrap.channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AddressGuard(mayConnect))
                }
            }
        }
        #if os(Linux)
            if let timeout = configuration.unacknowledgedTimeout {
                // 18 is TCP_USER_TIMEOUT of <linux/tcp.h>, in milliseconds; it bounds retransmission and TCP
                // keep-alive.
                let option = ChannelOptions.tcpOption(NIOBSDSocket.Option(rawValue: 18))
                let milliseconds = TimeAmount(timeout).nanoseconds / 1_000_000
                return bootstrap.channelOption(option, value: Int(milliseconds))
            }
        #endif
        return bootstrap
    }

    /// Adds the handlers after TCP is connected. The bootstrap would add them to every address that it tries at once.
    private func connected(_ connection: ClientChannelHandler, _ channel: any Channel) {
        guard connections[connection.id] === connection, channel.isActive else {
            channel.close(promise: nil)
            connection.connectionEnded()
            return
        }
        do {
            connection.begin(readyWithin: TimeAmount(configuration.connectTimeout), eventLoop: eventLoop)
            try channel.pipeline.syncOperations.addHandlers(tls.makeHandler(), connection)
        } catch {
            connection.end(ClientTLS.failure(from: error))
            channel.close(promise: nil)
            if connection.context == nil { connection.connectionEnded() }
        }
    }

    private func connectFailed(_ connection: ClientChannelHandler, _ error: any Error) {
        let code: HTTP2Failure.Code =
            if AddressGuard.isRefusal(error) {
                .addressRefused
            } else if Self.isTimeout(error) {
                .connectTimeout
            } else {
                .connectFailed
            }
        connection.end(HTTP2Failure(code, "\(endpoint.host):\(endpoint.port): \(error)"))
        connection.connectionEnded()
    }

    private static func isTimeout(_ error: any Error) -> Bool {
        if case .connectTimeout? = error as? ChannelError { return true }
        // A connection error holds one error for each address tried.
        guard let tried = (error as? NIOConnectionError)?.connectionErrors, !tried.isEmpty else { return false }
        return tried.allSatisfy { isTimeout($0.error) }
    }

    // MARK: Events. Some arrive from within session callbacks, so they change state and start no work.

    func becameReady(_ connection: ClientChannelHandler) {
        statistics.connectionsOpened += 1
        statistics.streamLimit = connection.streamLimit
        pool.becameReady(connection.id, limit: connection.streamLimit)
        logger.debug(
            "connection ready", metadata: ["connection": "\(connection.id)", "streams": "\(connection.streamLimit)"])
    }

    func limitChanged(_ connection: ClientChannelHandler) {
        statistics.streamLimit = connection.streamLimit
        pool.limitChanged(connection.id, to: connection.streamLimit)
    }

    func markProven(_ connection: ClientChannelHandler) {
        pool.markProven(connection.id)
        limitChanged(connection)
    }

    func received(_ notice: HTTP2GoAwayNotice, on connection: ClientChannelHandler) {
        statistics.goAways += 1
        statistics.lastGoAway = notice
        connection.isDraining = true
        pool.drain(connection.id)
        logger.info(
            "GOAWAY received; draining the connection",
            metadata: ["connection": "\(connection.id)", "goaway": "\(notice)"])
    }

    func released(_ connection: ClientChannelHandler) {
        pool.releaseStream(connection.id)
    }

    func responseReceived() {
        statistics.responses += 1
    }

    func reset(_ code: HTTP2ErrorCode) {
        statistics.resets[code, default: 0] += 1
    }

    func pingTimedOut() {
        statistics.pingTimeouts += 1
    }

    // MARK: Draining

    /// Stops opening streams on a connection; it closes once its open ones have ended.
    func drain(_ connection: ClientChannelHandler) {
        pool.drain(connection.id)
        connection.drain()
    }

    /// Drains every connection and fails the waiting requests as `retired`. They carry the old credential; as the first
    /// request on a new connection they would bind it to that credential.
    func retireConnections() {
        for connection in connections.values where connection.isReady {
            connection.isRetired = true
            drain(connection)
        }
        failWaiting(.notProcessed(Self.retired))
        processQueue()
    }

    static let retired = HTTP2Failure(.retired, "its connection was retired")
}
