import Logging
import NIOCore
import NIOPosix

/// Making connections, and what they report.
extension ClientCore {
    func connect(_ id: ConnectionPool.ID) {
        let connection = ClientChannelHandler(id: id, core: self)
        connections[id] = connection
        let bound = NIOLoopBound(connection, eventLoop: eventLoop)
        // One look-up and one race of addresses for each connection: NIO caches neither.
        bootstrap().connect(host: endpoint.host, port: endpoint.port).whenComplete { result in
            let connection = bound.value
            switch result {
            case .success(let channel): connection.core.connected(connection, channel)
            case .failure(let error): connection.core.connectFailed(connection, error)
            }
        }
    }

    private func bootstrap() -> ClientBootstrap {
        let bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(TimeAmount(configuration.connectTimeout))
            .channelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(ChannelOptions.socketOption(.so_keepalive), value: 1)
        #if os(Linux)
            if let timeout = configuration.unacknowledgedTimeout {
                // TCP_USER_TIMEOUT of <linux/tcp.h>, in milliseconds: bounds retransmission as well as keep-alive.
                let option = ChannelOptions.tcpOption(NIOBSDSocket.Option(rawValue: 18))
                let milliseconds = TimeAmount(timeout).nanoseconds / 1_000_000
                return bootstrap.channelOption(option, value: Int(milliseconds))
            }
        #endif
        return bootstrap
    }

    /// TCP is connected. The handlers are added here and not by the bootstrap, because of several addresses tried at
    /// once only the winner is ours.
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
        let code: HTTP2Failure.Code = Self.isTimeout(error) ? .connectTimeout : .connectFailed
        connection.end(HTTP2Failure(code, "\(endpoint.host):\(endpoint.port): \(error)"))
        connection.connectionEnded()
    }

    private static func isTimeout(_ error: any Error) -> Bool {
        if case .connectTimeout? = error as? ChannelError { return true }
        // One error for each address that was tried.
        guard let tried = (error as? NIOConnectionError)?.connectionErrors, !tried.isEmpty else { return false }
        return tried.allSatisfy { isTimeout($0.error) }
    }

    // MARK: Reports, some from inside session events: they change values and start nothing

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

    func proved(_ connection: ClientChannelHandler) {
        pool.proved(connection.id)
        limitChanged(connection)
    }

    func received(_ notice: HTTP2GoAwayNotice, on connection: ClientChannelHandler) {
        statistics.goAways += 1
        statistics.lastGoAway = notice
        connection.isDraining = true
        pool.drain(connection.id)
        logger.info(
            "server ends the connection", metadata: ["connection": "\(connection.id)", "goaway": "\(notice)"])
    }

    func released(_ connection: ClientChannelHandler) {
        pool.releaseStream(connection.id)
    }

    func answered() {
        statistics.responses += 1
    }

    func reset(_ code: HTTP2ErrorCode) {
        statistics.resets[code, default: 0] += 1
    }

    func pingTimedOut() {
        statistics.pingTimeouts += 1
    }

    // MARK: Orders

    /// Lets a connection finish what it has and take nothing more.
    func drain(_ connection: ClientChannelHandler) {
        pool.drain(connection.id)
        connection.drain()
    }

    /// Lets every connection finish and be replaced. Who waits for a stream was made for the old ones and is given back: on a
    /// new one it would come first, and bind it to the credential of before.
    func retireConnections() {
        for connection in connections.values where connection.isReady {
            connection.isRetired = true
            drain(connection)
        }
        failWaiting(.notProcessed(Self.retired))
        turn()
    }

    static let retired = HTTP2Failure(.retired, "it was for a connection that was retired")
}
