package import NIOCore

/// The callbacks of a session, called within `receive` and `drain` on the connection's event loop. Implementations may
/// submit frames but must not call `receive` or `drain`.
package protocol SessionEvents: AnyObject {
    func headersBegan(stream: Int32)
    /// The bytes belong to the session and are valid only during the call.
    func headerReceived(
        stream: Int32, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, neverIndexed: Bool)
    /// The bytes are a slice of the read buffer and are valid only during the call.
    func dataReceived(stream: Int32, bytes: UnsafeRawBufferPointer)
    func endStreamReceived(stream: Int32)
    func settingsReceived()
    func pingReceived(acknowledgement: Bool)
    func goAwayReceived(_ notice: HTTP2GoAwayNotice)

    /// Returns the byte count for the stream's next DATA frame.
    func bodyOffer(stream: Int32, maximum: Int) -> OutgoingBody.Offer
    /// Appends exactly the `count` bytes of the last offer to the output.
    func writeBody(stream: Int32, count: Int, into output: inout ByteBuffer)
    /// Called before our frame with END_STREAM is written.
    func endStreamSending(stream: Int32)
    /// Called when a submitted HEADERS frame will never be sent.
    func headersNotSent(stream: Int32)
    /// Called when a stream has closed, for any reason. Not called for streams open when the session is released.
    func streamClosed(stream: Int32, code: HTTP2ErrorCode)
}
