import HTTP2
import NIOCore

extension ServerChannelHandler {
    /// Runs `steps` for `stream`, or for the connection if `stream` is nil; stops once the connection has closed.
    func perform(_ steps: ArraySlice<HTTP2ServerStep>, stream: Int32?) {
        for (index, step) in zip(steps.indices, steps) {
            guard let context, session != nil, !isStalled else { return }
            if case .wait(let duration) = step {
                let rest = NIOLoopBound((self, steps[(index + 1)...]), eventLoop: context.eventLoop)
                context.eventLoop.scheduleTask(in: TimeAmount(duration)) {
                    let (handler, steps) = rest.value
                    handler.perform(steps, stream: stream)
                }
                return
            }
            do {
                try perform(step, stream: stream)
            } catch {
                return fail("\(step)", error)
            }
            // Flushes between steps: nghttp2 would send a RST_STREAM before a response submitted earlier.
            if !isReading || index + 1 < steps.endIndex { flush() }
        }
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
            try session?.submitSettings([.maximumConcurrentStreams(UInt32(clamping: count))])
        case .ping:
            try session?.submitPing()
        case .stall:
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
        awaitsLastGoAway = last == .max
        lastAdmittedStream = min(lastAdmittedStream, last)
        try session.submitGoAway(lastStream: last, code: goAway.code, debugData: goAway.debugData)
    }
}
