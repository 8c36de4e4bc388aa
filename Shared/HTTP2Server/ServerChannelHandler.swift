import HTTP2
import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// One server connection: drives its session and runs steps. Confined to its channel's event loop.
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
    /// Complete requests waiting for a synchronous handler. It is called only between session reads, because its steps
    /// may have to be written before the next request is handled.
    var unanswered: [Int32] = []
    /// The lowest last stream of all GOAWAYs sent; higher streams are ignored.
    var lastAdmittedStream = Int32.max
    /// Whether the first GOAWAY of a graceful shutdown was sent: streams may still arrive.
    var awaitsLastGoAway = false
    /// Whether a read is in progress; its responses are written together at the end.
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

    /// Writes the session's pending frames while the channel is writable.
    func flush() {
        guard let context, !isStalled else { return }
        do {
            // Flushes each piece: the channel does not see bytes that TLS buffers. A write may end the session.
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
        context?.resetConnection(bypassing: NIOSSLServerHandler.self)
    }

    /// Sends GOAWAY and closes; resets a stalled connection without GOAWAY.
    func shutDown() {
        if isStalled { return abort() }
        perform([.goAway(HTTP2ServerGoAway(lastStream: .received)), .closeConnection], stream: nil)
    }
}
