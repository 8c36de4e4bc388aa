import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// One connection of the server: drives its session and carries out steps. Confined to its channel's event loop.
final class ServerChannelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let server: ServerContext
    var context: ChannelHandlerContext?
    private(set) var session: Session?
    var connection: HTTP2ServerConnection?
    var streams: [Int32: ServerStream] = [:]
    var isStalled = false
    var closesWhenFlushed = false
    /// Whole requests that wait for a handler which is asked in order. Asked only between reads of the session, since
    /// what it answers may have to be on the wire before the next request is looked at.
    var unanswered: [Int32] = []
    /// The last stream of the strictest GOAWAY so far: what lies above it is not looked at.
    var lastAdmittedStream = Int32.max
    /// After the first step of a graceful end: streams may still come, though there may be none just now.
    var awaitsLastGoAway = false
    /// While a read turn lasts, its answers are written together at its end.
    private(set) var isReading = false

    init(server: ServerContext) {
        self.server = server
    }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let negotiated)? = event as? TLSUserEvent {
            // Without ALPN a client may still speak HTTP/2 with prior knowledge; the session checks its preface.
            if negotiated == nil || negotiated == "h2" {
                start(context: context)
            } else {
                context.close(promise: nil)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isStalled, let session else { return }
        let bytes = unwrapInboundIn(data)
        isReading = true
        do {
            try bytes.withUnsafeReadableBytes { try session.receive($0) }
        } catch {
            fail("reading", error)
        }
        answerInOrder()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        streams.removeAll()
        unanswered.removeAll()
        session = nil
        if let connection { server.closed(connection) }
        connection = nil
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        server.logger.debug("connection failed", metadata: ["error": "\(error)"])
        abort()
    }

    // MARK: Session

    private func start(context: ChannelHandlerContext) {
        let certificate = try? context.pipeline.syncOperations.nioSSL_peerCertificate()
        do {
            let session = try Session(role: .server, events: self)
            try session.submitSettings(server.settings.entries)
            if server.settings.initialWindowSize > 65_535 {
                try session.widenConnectionWindow(to: Int32(clamping: server.settings.initialWindowSize))
            }
            self.session = session
        } catch {
            fail("starting", error)
            return
        }
        guard let connection = server.opened(self, channel: context.channel, hasCertificate: certificate != nil) else {
            context.close(promise: nil)
            return
        }
        self.connection = connection
        flush()
    }

    /// Writes everything the session has to say while the channel takes it.
    func flush() {
        guard let context, !isStalled else { return }
        do {
            // Piece by piece: the channel is not told of what TLS holds until that is flushed, and writing may end it.
            while let session, context.channel.isWritable, let output = try session.drain() {
                context.writeAndFlush(wrapOutboundOut(output), promise: nil)
            }
        } catch {
            fail("writing", error)
            return
        }
        guard let session else { return }
        if (session.isFinished && !awaitsLastGoAway) || (closesWhenFlushed && context.channel.isWritable) {
            context.close(promise: nil)
        }
    }

    func fail(_ operation: String, _ error: any Error) {
        let text = (error as? SessionError)?.text ?? "\(error)"
        server.logger.debug("session failed", metadata: ["operation": "\(operation)", "error": "\(text)"])
        abort()
    }

    func abort() {
        isStalled = true
        context?.resetConnection(passing: NIOSSLServerHandler.self)
    }

    /// Says GOAWAY and closes, or only closes when the connection is to stay silent.
    func shutDown() {
        if isStalled { return abort() }
        perform([.goAway(HTTP2ServerGoAway(lastStream: .received)), .closeConnection], stream: nil)
    }
}
