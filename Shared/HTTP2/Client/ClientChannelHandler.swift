import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// One client connection: drives its session and streams. Confined to the client's event loop.
final class ClientChannelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let id: ConnectionPool.ID
    let core: ClientCore
    private(set) var session: Session?
    private(set) var context: ChannelHandlerContext?
    /// The open streams. A request that ended early stays until its stream is closed, since the peer still counts it.
    var openRequests = StreamTable<PendingRequest>()
    var isReady = false
    var isDraining = false
    /// Drained by `retireConnections`. Its unprocessed requests fail instead of being resent: they carry old
    /// credentials.
    var isRetired = false
    /// Whether a 2xx response arrived.
    var isProven = false
    /// Whether the core's flush list contains this connection.
    var needsFlush = false
    var goAway: HTTP2GoAwayNotice?
    /// The last read, or the moment when the first request opened on an idle connection.
    private(set) var idleSince = NIODeadline.now()
    private var isClosing = false
    /// The reason for which we are closing the connection, if any.
    private var failure: HTTP2Failure?
    private var readyTimer: Scheduled<Void>?
    private var keepAlive: KeepAlive?
    private var keepAliveTimer: Scheduled<Void>?

    init(id: ConnectionPool.ID, core: ClientCore) {
        self.id = id
        self.core = core
    }

    private var configuration: HTTP2ClientConfiguration { core.configuration }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let negotiated)? = event as? TLSUserEvent {
            if negotiated == "h2" {
                startSession()
            } else {
                let offer = negotiated.map { "“\($0)”" } ?? "nothing"
                end(HTTP2Failure(.noHTTP2, "ALPN negotiated \(offer) instead of “h2”"))
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let session else { return }
        idleSince = .now()
        keepAlive?.noteActivity(now: idleSince)
        let bytes = unwrapInboundIn(data)
        do {
            try bytes.withUnsafeReadableBytes { try session.receive($0) }
        } catch {
            end(Self.failure(error))
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        core.processQueue()
        flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
        core.processQueue()
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(ClientTLS.failure(from: error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        connectionEnded()
        context.fireChannelInactive()
    }

    // MARK: Lifecycle

    /// Starts the time-out for TLS and SETTINGS, once TCP is connected.
    func begin(readyWithin timeout: TimeAmount, eventLoop: any EventLoop) {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        readyTimer = eventLoop.scheduleTask(in: timeout) {
            bound.value.end(HTTP2Failure(.connectTimeout, "TLS and SETTINGS took longer than \(timeout)"))
        }
    }

    private func startSession() {
        let window = configuration.receiveWindow
        do {
            let session = try Session(role: .client, events: self)
            try session.submitSettings([.pushDisabled, .initialWindowSize(UInt32(clamping: window))])
            try session.widenConnectionWindow(to: Int32(clamping: window))
            if let firstStream = core.firstStream { session.nextStream = firstStream }
            self.session = session
        } catch {
            end(Self.failure(error))
        }
        flush()
    }

    func becameReady() {
        isReady = true
        readyTimer?.cancel()
    }

    /// Stops opening streams; closes the connection once the open ones have ended.
    func drain() {
        isDraining = true
        flush()
    }

    /// Resets the connection because of `failure`.
    func end(_ failure: HTTP2Failure) {
        self.failure = self.failure ?? failure
        context?.resetConnection(bypassing: NIOSSLClientHandler.self)
    }

    /// Settles every open stream after the channel closed or failed to connect.
    func connectionEnded() {
        readyTimer?.cancel()
        keepAliveTimer?.cancel()
        session = nil
        let failure = self.failure ?? HTTP2Failure(.connectionLost, "the server closed the connection")
        let lost = goAway.map { HTTP2Failure(failure.code, "\(failure.detail), after \($0)") } ?? failure
        let open = openRequests.inOrder
        openRequests = StreamTable()
        for (stream, request) in open { settle(request, stream: stream, .connectionLost(lost)) }
        core.ended(self, lost)
    }

    // MARK: Writing

    /// Opens a stream for `request`. On failure nothing was sent and the caller must finish or requeue the request.
    func open(_ request: PendingRequest) throws(SessionError) {
        guard let session else { throw SessionError(0) }
        let destination = core.destination
        let stream = try session.submitRequest(hasBody: request.prepareBody()) { arena in
            arena.append(destination)
            request.group.requests.write(request.index, to: &arena)
        }
        if openRequests.isEmpty {
            idleSince = .now()
            startKeepAlive()
        }
        openRequests.insert(request, at: stream)
        request.state = .open(self, stream: stream)
        // A connection that has used its last stream id must be replaced (RFC 9113 §5.1.1).
        if session.nextStream > UInt32(Int32.max) { core.drain(self) }
    }

    /// Resets a stream with CANCEL; the caller finishes its request.
    func cancel(stream: Int32) {
        do {
            try session?.submitReset(stream: stream, code: .cancel)
        } catch {
            end(Self.failure(error))
        }
    }

    /// Writes the session's pending frames while the channel is writable.
    func flush() {
        guard let context else { return }
        do {
            // Flushes each piece: the channel does not see bytes that TLS buffers. A write may end the session.
            while let session, context.channel.isWritable, let output = try session.drain() {
                context.writeAndFlush(wrapOutboundOut(output), promise: nil)
            }
        } catch {
            end(Self.failure(error))
            return
        }
        guard let session else { return }
        if isDraining && openRequests.isEmpty {
            closeGracefully(session)
        } else if session.isFinished {
            context.close(promise: nil)
        }
    }

    /// Sends GOAWAY, then TLS close_notify and FIN. Closes the connection even if sending fails.
    private func closeGracefully(_ session: Session) {
        guard let context, !isClosing else { return }
        isClosing = true
        do {
            try session.submitGoAway(lastStream: 0, code: .noError, debugData: [])
            if let output = try session.drain() {
                context.writeAndFlush(wrapOutboundOut(output), promise: nil)
            }
        } catch {
            core.logger.debug(
                "GOAWAY not sent; closing the connection", metadata: ["connection": "\(id)", "error": "\(error)"])
        }
        context.close(promise: nil)
    }

    // MARK: KeepAlive

    /// Starts the keep-alive checks when the first request opens.
    private func startKeepAlive() {
        guard let context, let pingAfter = configuration.pingAfter else { return }
        let now = NIODeadline.now()
        if keepAlive == nil {
            keepAlive = KeepAlive(
                pingAfter: TimeAmount(pingAfter), pingTimeout: TimeAmount(configuration.pingTimeout), now: now)
        }
        keepAlive?.noteActivity(now: now)
        if keepAliveTimer == nil { checkKeepAlive(at: now + TimeAmount(pingAfter), eventLoop: context.eventLoop) }
    }

    private func checkKeepAlive(at time: NIODeadline, eventLoop: any EventLoop) {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        keepAliveTimer = eventLoop.scheduleTask(deadline: time) { bound.value.checkKeepAlive() }
    }

    private func checkKeepAlive() {
        keepAliveTimer = nil
        guard let context, let session, !openRequests.isEmpty else { return }
        switch keepAlive?.check(now: .now()) {
        case .check(let next):
            checkKeepAlive(at: next, eventLoop: context.eventLoop)
        case .ping(let next):
            do {
                try session.submitPing()
            } catch {
                return end(Self.failure(error))
            }
            flush()
            checkKeepAlive(at: next, eventLoop: context.eventLoop)
        case .close:
            core.pingTimedOut()
            end(HTTP2Failure(.unresponsive, "nothing was read within \(configuration.pingTimeout) after a PING"))
        case nil:
            break
        }
    }

    private static func failure(_ error: any Error) -> HTTP2Failure {
        HTTP2Failure(.connectionLost, (error as? SessionError)?.text ?? "\(error)")
    }
}
