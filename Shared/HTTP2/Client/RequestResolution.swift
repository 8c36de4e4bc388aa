/// How a stream ended under an open request.
enum StreamEnd: Hashable {
    /// nghttp2 closed the stream: the answer is complete, the peer sent RST_STREAM, or a GOAWAY excludes it.
    case closed(HTTP2ErrorCode, goAway: HTTP2GoAwayNotice?)
    /// The HEADERS frame was never sent, because a GOAWAY arrived first.
    case neverSent
    case connectionLost(HTTP2Failure)
}

/// How a request continues after its stream ended (RFC 9113 §6.8 GOAWAY, §8.7 request reliability).
enum RequestResolution: Hashable {
    case answered
    /// Certainly not processed: requeued without an error to the caller.
    case resend
    case fail(HTTP2Error)

    /// Decides from the stream's end.
    ///
    /// - Parameters:
    ///   - stream: the stream's id, compared with a GOAWAY's last stream.
    ///   - answered: whether the response was complete, or its status was 2xx.
    ///   - written: whether our END_STREAM was written.
    ///   - mayResend: whether the request has resends left.
    init(_ end: StreamEnd, stream: Int32, answered: Bool, written: Bool, mayResend: Bool) {
        guard !answered else {
            self = .answered
            return
        }
        switch end {
        case .closed(.refusedStream, let goAway):
            let failure =
                if let goAway, stream > goAway.lastStream {
                    HTTP2Failure(.goAway, "the peer did not process stream \(stream): \(goAway)")
                } else {
                    HTTP2Failure(.refused, "the peer refused stream \(stream)")
                }
            self = mayResend ? .resend : .fail(.notProcessed(failure))
        case .closed(let code, _):
            let failure = HTTP2Failure(.reset, "the peer reset stream \(stream): \(code)")
            self = .fail(written ? .ambiguous(failure) : .notProcessed(failure))
        case .neverSent:
            let failure = HTTP2Failure(.goAway, "the peer accepts no more streams on this connection")
            self = mayResend ? .resend : .fail(.notProcessed(failure))
        case .connectionLost(let failure):
            if written {
                self = .fail(.ambiguous(failure))
            } else {
                self = mayResend ? .resend : .fail(.notProcessed(failure))
            }
        }
    }
}
