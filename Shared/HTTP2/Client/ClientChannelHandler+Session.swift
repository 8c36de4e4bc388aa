import NIOCore

extension ClientChannelHandler: SessionEvents {
    /// The maximum number of open streams: the peer's limit (RFC 9113 §5.1.2), our cap, or one until proven.
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
        openRequests[stream]?.received(name: name, value: value)
    }

    func dataReceived(stream: Int32, bytes: UnsafeRawBufferPointer) {
        let maximum = core.configuration.maximumResponseBody
        guard let request = openRequests[stream], !request.isFinished, !request.received(bytes, maximum: maximum)
        else { return }
        // The status is valid without the body.
        request.dropBody()
        complete(request)
        cancel(stream: stream)
    }

    func endStreamReceived(stream: Int32) {
        openRequests[stream]?.isResponseComplete = true
    }

    func bodyOffer(stream: Int32, maximum: Int) -> OutgoingBody.Offer {
        openRequests[stream]?.bodyOffer(maximum: maximum) ?? .later
    }

    func writeBody(stream: Int32, count: Int, into output: inout ByteBuffer) {
        openRequests[stream]?.takeBody(count) { output.writeBytes($0) }
    }

    func endStreamSending(stream: Int32) {
        openRequests[stream]?.isWritten = true
    }

    func headersNotSent(stream: Int32) {
        guard let request = openRequests.remove(stream) else { return }
        core.released(self)
        settle(request, stream: stream, .neverSent)
    }

    func streamClosed(stream: Int32, code: HTTP2ErrorCode) {
        guard let request = openRequests.remove(stream) else { return }
        core.released(self)
        // nghttp2 closes streams above a GOAWAY's last stream as REFUSED_STREAM, without an RST_STREAM of the peer.
        let isAboveGoAway = goAway.map { stream > $0.lastStream } ?? false
        if !request.isResponseComplete && !request.isFinished && !isAboveGoAway { core.reset(code) }
        settle(request, stream: stream, .closed(code, goAway: goAway))
    }

    /// Finishes a request with the response received so far.
    private func complete(_ request: PendingRequest) {
        let response = request.response(readAt: idleSince)
        if (200..<300).contains(response.status) && !isProven {
            isProven = true
            core.markProven(self)
        }
        core.responseReceived()
        request.finish(.success(response))
    }

    /// Finishes or requeues a request whose stream has ended.
    func settle(_ request: PendingRequest, stream: Int32, _ end: StreamEnd) {
        guard !request.isFinished else { return }
        let mayResend = request.resends < core.configuration.maximumResends
        switch RequestResolution(
            end, stream: stream, answered: request.isResponseComplete || request.isAccepted, written: request.isWritten,
            mayResend: mayResend
        )
        {
        case .answered:
            complete(request)
        case .resend where isRetired:
            request.finish(.failure(.notProcessed(ClientCore.retired)))
        case .resend:
            core.requeue(request)
        case .fail(let error):
            request.finish(.failure(error))
        }
    }
}
