import NIOCore

/// What a session tells its connection, always from inside one of the connection's own calls into the session and
/// therefore on its event loop. A receiver may submit frames here, but neither feed nor drain the session.
protocol SessionEvents: AnyObject {
    func headersBegan(stream: Int32)
    /// The bytes are the session's and are gone when this returns.
    func headerReceived(
        stream: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, neverIndexed: Bool)
    /// The bytes are the slice of the read buffer they arrived in and are gone when this returns.
    func dataReceived(stream: Int32, bytes: UnsafeRawBufferPointer)
    func endStreamReceived(stream: Int32)
    func settingsReceived()
    func pingReceived(acknowledgement: Bool)
    func goAwayReceived(_ notice: HTTP2GoAwayNotice)

    /// How much of the stream's outgoing body may be framed now.
    func bodyOffer(stream: Int32, maximum: Int) -> OutgoingBody.Offer
    /// Appends exactly `count` bytes, as offered just before, to the output.
    func writeBody(stream: Int32, count: Int, into output: inout ByteBuffer)
    /// The frame that ends our side of the stream is on its way into the output.
    func endStreamSending(stream: Int32)
    /// A HEADERS frame we submitted will never be sent.
    func headersNotSent(stream: Int32)
    /// The stream is over, however it ended. Not called for streams still open when the session is dropped.
    func streamClosed(stream: Int32, code: HTTP2ErrorCode)
}
