import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// One connection of the server: drives its session and carries out steps. Confined to its channel's event loop.
final class ServerChannelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Ends a read-and-write turn before one connection's output fills memory.
    private static let flushLimit = 256 * 1024

    private let server: ServerContext
    private var context: ChannelHandlerContext?
    private(set) var session: Session?
    private(set) var connection: HTTP2ServerConnection?
    private var streams: [Int32: ServerStream] = [:]
    private var isStalled = false
    private var closesWhenFlushed = false

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
        do {
            try bytes.withUnsafeReadableBytes { try session.receive($0) }
        } catch {
            fail("reading", error)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        streams.removeAll()
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
        guard let context, let session, !isStalled else { return }
        var wrote = false
        do {
            while context.channel.isWritable, let output = try session.drain(limit: Self.flushLimit) {
                context.write(wrapOutboundOut(output), promise: nil)
                wrote = true
            }
        } catch {
            fail("writing", error)
            return
        }
        if wrote { context.flush() }
        if session.isFinished || (closesWhenFlushed && context.channel.isWritable) { context.close(promise: nil) }
    }

    private func fail(_ operation: String, _ error: any Error) {
        let text = (error as? SessionError)?.text ?? "\(error)"
        server.logger.debug("session failed", metadata: ["operation": "\(operation)", "error": "\(text)"])
        abort()
    }

    private func abort() {
        isStalled = true
        context?.resetConnection(passing: NIOSSLServerHandler.self)
    }

    /// Says GOAWAY and closes, or only closes when the connection is to stay silent.
    func shutDown() {
        if isStalled { return abort() }
        perform([.goAway(HTTP2ServerGoAway(lastStream: .received)), .closeConnection], stream: nil)
    }
}

// MARK: - Steps

extension ServerChannelHandler {
    /// Carries out `steps` for `stream`, or for the connection alone when there is none; stops when it is gone.
    func perform(_ steps: ArraySlice<HTTP2ServerStep>, stream: Int32?) {
        for (index, step) in zip(steps.indices, steps) {
            guard let context, session != nil, !isStalled else { return }
            if case .wait(let duration) = step {
                let rest = NIOLoopBound((self, steps[(index + 1)...]), eventLoop: context.eventLoop)
                context.eventLoop.scheduleTask(in: TimeAmount(duration)) {
                    let (handler, steps) = rest.value
                    handler.perform(steps, stream: stream)
                }
                break
            }
            do {
                try perform(step, stream: stream)
            } catch {
                fail("\(step)", error)
                return
            }
        }
        flush()
    }

    private func perform(_ step: HTTP2ServerStep, stream: Int32?) throws(SessionError) {
        switch step {
        case .respond(let status, let headers, let body):
            try respond(status, headers, OutgoingBody(body, isComplete: true), stream: stream)
        case .headers(let status, let headers):
            try respond(status, headers, OutgoingBody([], isComplete: false), stream: stream)
        case .data(let bytes, let last):
            guard let stream else { return }
            streams[stream]?.response?.append(bytes, isLast: last)
            session?.resumeBody(stream: stream)
        case .wait:
            break
        case .reset(let code):
            if let stream, streams[stream] != nil { try session?.submitReset(stream: stream, code: code) }
        case .goAway(let goAway):
            try submit(goAway, stream: stream)
        case .changeMaximumConcurrentStreams(let count):
            try session?.submitSettings([.maximumConcurrentStreams(UInt32(count))])
        case .ping:
            try session?.submitPing()
        case .stall:
            flush()
            isStalled = true
            context?.channel.setOption(ChannelOptions.autoRead, value: false).whenFailure { _ in }
        case .closeConnection:
            closesWhenFlushed = true
        case .dropConnection:
            abort()
        }
    }

    private func respond(
        _ status: Int, _ headers: [HTTP2Header], _ body: OutgoingBody, stream: Int32?
    ) throws(SessionError) {
        guard let stream, let state = streams[stream], !state.hasResponse else { return }
        let ends = body.isEmpty && !body.isOpen
        streams[stream]?.hasResponse = true
        streams[stream]?.response = body
        try session?.submitResponse(stream: stream, hasBody: !ends) { arena in
            arena.append(":status", String(status))
            for header in headers { arena.append(header) }
        }
    }

    private func submit(_ goAway: HTTP2ServerGoAway, stream: Int32?) throws(SessionError) {
        guard let session else { return }
        let received = session.lastPeerStream
        let last: Int32 =
            switch goAway.lastStream {
            case .maximum: .max
            case .this: stream ?? received
            case .beforeThis: max(0, (stream ?? received) - 2)
            case .received: received
            case .exactly(let id): id
            }
        try session.submitGoAway(lastStream: last, code: goAway.code, debugData: goAway.debugData)
    }
}

// MARK: - Session events

extension ServerChannelHandler: SessionEvents {
    func headersBegan(stream: Int32) {
        guard streams[stream] == nil else { return }
        streams[stream] = ServerStream()
        connection?.requests += 1
        streamsChanged()
    }

    func headerReceived(
        stream: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, neverIndexed: Bool
    ) {
        streams[stream]?.received(
            HTTP2Header(
                name: String(decoding: name, as: UTF8.self), value: String(decoding: value, as: UTF8.self),
                neverIndexed: neverIndexed))
    }

    func dataReceived(stream: Int32, bytes: UnsafeRawBufferPointer) {
        guard let count = streams[stream]?.body.count else { return }
        if count + bytes.count > server.settings.maximumBodySize {
            streams[stream] = nil
            try? session?.submitReset(stream: stream, code: .enhanceYourCalm)
            return
        }
        streams[stream]?.body.append(contentsOf: bytes)
    }

    func endStreamReceived(stream: Int32) {
        guard let context, let connection, let state = streams[stream] else { return }
        let request = state.request(on: connection, stream: stream)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let (loop, handle) = (context.eventLoop, server.handler)
        Task {
            let steps = await handle(request)
            loop.execute { bound.value.perform(steps[...], stream: stream) }
        }
    }

    func settingsReceived() {}

    func pingReceived(acknowledgement: Bool) {
        guard !acknowledgement, let id = connection?.id else { return }
        connection?.pings += 1
        streamsChanged()
        server.report(.pingReceived(connection: id))
    }

    func goAwayReceived(_ notice: HTTP2GoAwayNotice) {}

    func bodyOffer(stream: Int32, maximum: Int) -> OutgoingBody.Offer {
        // A stream dropped for its size has no body to offer; its RST_STREAM is already queued.
        streams[stream]?.response?.offer(maximum: maximum) ?? .later
    }

    func writeBody(stream: Int32, count: Int, into output: inout ByteBuffer) {
        streams[stream]?.response?.write(count: count, into: &output)
    }

    func endStreamSending(stream: Int32) {}

    func headersNotSent(stream: Int32) {}

    func streamClosed(stream: Int32, code: HTTP2ErrorCode) {
        streams[stream] = nil
        streamsChanged()
        if code != .noError, let id = connection?.id {
            server.report(.streamReset(connection: id, stream: stream, code: code))
        }
    }

    private func streamsChanged() {
        guard var connection else { return }
        connection.openStreams = streams.count
        connection.peakStreams = max(connection.peakStreams, streams.count)
        self.connection = connection
        server.changed(connection)
    }
}
