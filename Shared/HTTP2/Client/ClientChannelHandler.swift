import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// One connection of the client: drives its session and the streams on it. Confined to the client's event loop.
final class ClientChannelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let id: ConnectionPool.ID
    let core: ClientCore
    private(set) var session: Session?
    private(set) var context: ChannelHandlerContext?
    /// The open streams. A call that ended early stays until its stream is closed, since the peer still counts it.
    var calls = StreamTable<Call>()
    var isReady = false
    var isDraining = false
    /// For a reason that what was sent on it may share: nothing of it is sent again here.
    var isRetired = false
    var isProven = false
    /// It is on the core's list of connections to flush at the end of the turn.
    var isTouched = false
    var goAway: HTTP2GoAwayNotice?
    /// Since when nothing was read while requests were open.
    private(set) var quietSince = NIODeadline.now()
    private var isClosing = false
    /// Why the connection is about to end, when we know.
    private var failure: HTTP2Failure?
    private var readyTimer: Scheduled<Void>?
    private var liveness: Liveness?
    private var livenessTimer: Scheduled<Void>?

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
                end(HTTP2Failure(.noHTTP2, "the server agreed on \(offer) instead of ALPN “h2”"))
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let session else { return }
        quietSince = .now()
        liveness?.wake(now: quietSince)
        let bytes = unwrapInboundIn(data)
        do {
            try bytes.withUnsafeReadableBytes { try session.receive($0) }
        } catch {
            end(Self.failure(error))
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        core.turn()
        flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
        core.turn()
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(ClientTLS.failure(from: error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        connectionEnded()
        context.fireChannelInactive()
    }

    // MARK: Life

    /// The channel is connected and TLS under way.
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

    /// Takes no more streams; closes once those that are open have ended.
    func drain() {
        isDraining = true
        flush()
    }

    /// Ends the connection at once, because of `failure`.
    func end(_ failure: HTTP2Failure) {
        self.failure = self.failure ?? failure
        context?.resetConnection(passing: NIOSSLClientHandler.self)
    }

    /// The channel is gone, or there never was one: settles every stream that was open.
    func connectionEnded() {
        readyTimer?.cancel()
        livenessTimer?.cancel()
        session = nil
        let failure = self.failure ?? HTTP2Failure(.connectionLost, "the server closed the connection")
        let lost = goAway.map { HTTP2Failure(failure.code, "\(failure.detail), after \($0)") } ?? failure
        let open = calls.inOrder
        calls = StreamTable()
        for (stream, call) in open { settle(call, stream: stream, .connectionLost(lost)) }
        core.ended(self, lost)
    }

    // MARK: Writing

    /// Opens a stream for `call`. On failure nothing was sent and the call is still the caller's.
    func open(_ call: Call) throws(SessionError) {
        guard let session else { throw SessionError(0) }
        let destination = core.destination
        let stream = try session.submitRequest(hasBody: call.begin()) { arena in
            arena.append(destination)
            call.burst.requests.write(call.index, to: &arena)
        }
        if calls.isEmpty {
            quietSince = .now()
            watch()
        }
        calls.insert(call, at: stream)
        call.place = .open(self, stream: stream)
        // Stream ids only grow (RFC 9113 §5.1.1): the last one ends the connection's usefulness.
        if session.nextStream > UInt32(Int32.max) { core.drain(self) }
    }

    /// Gives a stream up; its call was finished by the caller.
    func cancel(stream: Int32) {
        do {
            try session?.submitReset(stream: stream, code: .cancel)
        } catch {
            end(Self.failure(error))
        }
    }

    /// Writes everything the session has to say while the channel takes it.
    func flush() {
        guard let context else { return }
        do {
            // Piece by piece: the channel is not told of what TLS holds until that is flushed, and writing may end it.
            while let session, context.channel.isWritable, let output = try session.drain() {
                context.writeAndFlush(wrapOutboundOut(output), promise: nil)
            }
        } catch {
            end(Self.failure(error))
            return
        }
        guard let session else { return }
        if isDraining && calls.isEmpty {
            sayGoodbye(session)
        } else if session.isFinished {
            context.close(promise: nil)
        }
    }

    /// GOAWAY, then TLS close_notify and FIN. Whatever fails on the way, the connection is closed.
    private func sayGoodbye(_ session: Session) {
        guard let context, !isClosing else { return }
        isClosing = true
        do {
            try session.submitGoAway(lastStream: 0, code: .noError, debugData: [])
            if let output = try session.drain() {
                context.writeAndFlush(wrapOutboundOut(output), promise: nil)
            }
        } catch {
            core.logger.debug("no goodbye", metadata: ["connection": "\(id)", "error": "\(error)"])
        }
        context.close(promise: nil)
    }

    // MARK: Liveness

    /// Starts watching, now that there is something to wait for.
    private func watch() {
        guard let context, let pingAfter = configuration.pingAfter else { return }
        let now = NIODeadline.now()
        if liveness == nil {
            liveness = Liveness(
                pingAfter: TimeAmount(pingAfter), pingTimeout: TimeAmount(configuration.pingTimeout), now: now)
        }
        liveness?.wake(now: now)
        if livenessTimer == nil { look(at: now + TimeAmount(pingAfter), eventLoop: context.eventLoop) }
    }

    private func look(at time: NIODeadline, eventLoop: any EventLoop) {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        livenessTimer = eventLoop.scheduleTask(deadline: time) { bound.value.look() }
    }

    private func look() {
        livenessTimer = nil
        guard let context, let session, !calls.isEmpty else { return }
        switch liveness?.check(now: .now()) {
        case .check(let next):
            look(at: next, eventLoop: context.eventLoop)
        case .ping(let next):
            do {
                try session.submitPing()
            } catch {
                return end(Self.failure(error))
            }
            flush()
            look(at: next, eventLoop: context.eventLoop)
        case .giveUp:
            core.pingTimedOut()
            end(HTTP2Failure(.unresponsive, "a PING brought nothing within \(configuration.pingTimeout)"))
        case nil:
            break
        }
    }

    private static func failure(_ error: any Error) -> HTTP2Failure {
        HTTP2Failure(.connectionLost, (error as? SessionError)?.text ?? "\(error)")
    }
}
