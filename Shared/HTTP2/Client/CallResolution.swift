/// How a stream ended under an open request.
enum StreamEnd: Hashable {
    /// nghttp2 closed the stream: the answer is complete, the peer sent RST_STREAM, or a GOAWAY excludes it.
    case closed(HTTP2ErrorCode, goAway: HTTP2GoAwayNotice?)
    /// The HEADERS frame never left, because a GOAWAY came before it.
    case neverSent
    case connectionLost(HTTP2Failure)
}

/// What becomes of a request when its stream has ended (`push-protocols` table under GOAWAY, RFC 9113 §8.7).
enum CallResolution: Hashable {
    case answered
    /// Certainly not processed: back to the queue, without the caller noticing.
    case resend
    case fail(HTTP2Error)

    /// Decides from what is known about the stream alone.
    ///
    /// - Parameters:
    ///   - stream: the stream's id, held against a GOAWAY's last stream.
    ///   - answered: the response had ended before the stream did.
    ///   - written: our END_STREAM had left.
    ///   - mayResend: the request was not sent too often already.
    init(_ end: StreamEnd, stream: Int32, answered: Bool, written: Bool, mayResend: Bool) {
        guard !answered else {
            self = .answered
            return
        }
        switch end {
        case .closed(.refusedStream, let goAway):
            let failure =
                if let goAway, stream > goAway.lastStream {
                    HTTP2Failure(.goAway, "stream \(stream) was not processed: \(goAway)")
                } else {
                    HTTP2Failure(.refused, "the peer refused stream \(stream)")
                }
            self = mayResend ? .resend : .fail(.notProcessed(failure))
        case .closed(let code, _):
            let failure = HTTP2Failure(.reset, "the peer reset stream \(stream): \(code)")
            self = .fail(written ? .ambiguous(failure) : .notProcessed(failure))
        case .neverSent:
            let failure = HTTP2Failure(.goAway, "the peer takes no more streams on this connection")
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
