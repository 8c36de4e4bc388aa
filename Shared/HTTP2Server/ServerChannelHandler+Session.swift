import HTTP2
import NIOCore

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
        guard case .concurrent(let handle) = server.handler else { return unanswered.append(stream) }
        let request = state.request(on: connection, stream: stream)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        Task {
            let steps = await handle(request)
            loop.execute { bound.value.perform(steps[...], stream: stream) }
        }
    }

    /// Calls the synchronous handler for every request completed in this read. Skips requests above the last stream of
    /// a GOAWAY and requests after a dropped connection, which the client knows to be unprocessed.
    func answerInOrder() {
        guard case .inOrder(let handle) = server.handler, !unanswered.isEmpty else { return }
        let whole = unanswered
        unanswered.removeAll(keepingCapacity: true)
        for stream in whole where stream <= lastAdmittedStream && !isStalled {
            guard let connection, let state = streams[stream] else { continue }
            perform(handle(state.request(on: connection, stream: stream))[...], stream: stream)
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
        // A stream removed for its body size has no response; its RST_STREAM is already queued.
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
