import NIOCore

extension ClientChannelHandler: SessionEvents {
    /// How many streams may be open now (RFC 9113 §5.1.2, and our own two bounds).
    var streamLimit: Int {
        let configuration = core.configuration
        if configuration.startsWithOneStream && !isProven { return min(1, session?.peerMaximumStreams ?? 0) }
        return min(configuration.maximumConcurrentStreams, session?.peerMaximumStreams ?? 0)
    }

    func settingsReceived() {
        if isReady {
            core.limitChanged(self)
        } else {
            becameReady()
            core.becameReady(self)
        }
    }

    func goAwayReceived(_ notice: HTTP2GoAwayNotice) {
        goAway = notice
        core.received(notice, on: self)
    }

    func pingReceived(acknowledgement: Bool) {}

    func headersBegan(stream: Int32) {}

    func headerReceived(
        stream: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, neverIndexed: Bool
    ) {
        calls[stream]?.received(name: name, value: value)
    }

    func dataReceived(stream: Int32, bytes: UnsafeRawBufferPointer) {
        let maximum = core.configuration.maximumResponseBody
        guard let call = calls[stream], !call.isFinished, !call.received(bytes, maximum: maximum) else { return }
        // The status came before the body, and holds without it.
        call.dropBody()
        answer(call)
        cancel(stream: stream)
    }

    func endStreamReceived(stream: Int32) {
        calls[stream]?.isAnswered = true
    }

    func bodyOffer(stream: Int32, maximum: Int) -> OutgoingBody.Offer {
        calls[stream]?.bodyOffer(maximum: maximum) ?? .later
    }

    func writeBody(stream: Int32, count: Int, into output: inout ByteBuffer) {
        calls[stream]?.takeBody(count) { output.writeBytes($0) }
    }

    func endStreamSending(stream: Int32) {
        calls[stream]?.isWritten = true
    }

    func headersNotSent(stream: Int32) {
        guard let call = calls.remove(stream) else { return }
        core.released(self)
        settle(call, stream: stream, .neverSent)
    }

    func streamClosed(stream: Int32, code: HTTP2ErrorCode) {
        guard let call = calls.remove(stream) else { return }
        core.released(self)
        // nghttp2 closes what a GOAWAY disowns as if it were refused; the peer sent no RST_STREAM for it.
        let isDisowned = goAway.map { stream > $0.lastStream } ?? false
        if !call.isAnswered && !call.isFinished && !isDisowned { core.reset(code) }
        settle(call, stream: stream, .closed(code, goAway: goAway))
    }

    /// Finishes a call with its response as far as it has come.
    private func answer(_ call: Call) {
        let response = call.response
        if (200..<300).contains(response.status) && !isProven {
            isProven = true
            core.proved(self)
        }
        core.answered()
        call.finish(.success(response))
    }

    /// Finishes a call whose stream has ended, or returns it to the queue.
    func settle(_ call: Call, stream: Int32, _ end: StreamEnd) {
        guard !call.isFinished else { return }
        let mayResend = call.resends < core.configuration.maximumResends
        switch CallResolution(
            end, stream: stream, answered: call.isAnswered || call.isTaken, written: call.isWritten,
            mayResend: mayResend
        )
        {
        case .answered:
            answer(call)
        case .resend where isRetired:
            call.finish(.failure(.notProcessed(ClientCore.retired)))
        case .resend:
            core.requeue(call)
        case .fail(let error):
            call.finish(.failure(error))
        }
    }
}
