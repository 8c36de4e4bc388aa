internal import CRabbitMQ
internal import Glibc

/// One broker connection with one working channel. The only owner of the librabbitmq state.
///
/// **Threads.** Created, used and destroyed on one thread, as librabbitmq requires. Another thread may only shut the
/// socket down (``SocketWatchdog``).
///
/// **Memory.** All received values are copied before the library's buffers are released.
struct Connection: ~Copyable {
    /// The channel that publishes or consumes.
    static let channel: amqp_channel_t = 1
    /// The channel for passive declares. The broker closes it when the object does not exist.
    static let probe: amqp_channel_t = 2

    let state: amqp_connection_state_t
    /// The broker's address, for logs and errors.
    let peer: String
    var arena = WireArena()
    private var interner = StringInterner()
    var probeIsOpen = false

    init(state: amqp_connection_state_t, peer: String) {
        self.state = state
        self.peer = peer
    }

    deinit { amqp_destroy_connection(state) }

    /// The socket, for `poll` and the watchdog.
    var descriptor: Int32 { amqp_get_sockfd(state) }

    /// Whether the library has buffered frames that `poll` does not report.
    var hasBufferedFrames: Bool { amqp_frames_enqueued(state) != 0 || amqp_data_in_buffer(state) != 0 }

    /// The next available frame; nil when there is none. Sends a due heartbeat, and throws when the peer missed its
    /// heartbeats.
    mutating func nextFrame() throws(AMQPError) -> (channel: UInt16, frame: Frame)? {
        var raw = amqp_frame_t()
        var zero = timeval()
        let status = amqp_simple_wait_frame_noblock(state, &raw, &zero)
        if status == AMQP_STATUS_TIMEOUT.rawValue { return nil }
        try check(status, "read from \(peer)")
        let frame = Frame(raw, &interner)
        amqp_maybe_release_buffers_on_channel(state, raw.channel)
        return (raw.channel, frame)
    }

    // MARK: - Calls

    /// Converts a library status to an error.
    func check(_ status: Int32, _ operation: @autoclosure () -> String) throws(AMQPError) {
        guard status < 0 else { return }
        throw AMQPError(status: status, operation: operation())
    }

    /// Converts a reply to an error, and answers a channel close.
    func check(
        _ reply: amqp_rpc_reply_t, on channel: amqp_channel_t = Connection.channel,
        _ operation: @autoclosure () -> String
    ) throws(AMQPError) {
        switch reply.reply_type {
        case AMQP_RESPONSE_NORMAL: return
        case AMQP_RESPONSE_LIBRARY_EXCEPTION: try check(reply.library_error, operation())
        case AMQP_RESPONSE_SERVER_EXCEPTION where reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD:
            let close = Frame.Close(reply.reply.decoded.assumingMemoryBound(to: amqp_channel_close_t.self).pointee)
            var answer = amqp_channel_close_ok_t()
            try check(amqp_send_method(state, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &answer), operation())
            throw AMQPError(.channelClosed(replyCode: close.code), operation: operation(), detail: close.text)
        case AMQP_RESPONSE_SERVER_EXCEPTION where reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD:
            let close = Frame.Close(reply.reply.decoded.assumingMemoryBound(to: amqp_connection_close_t.self).pointee)
            answerClose()
            throw AMQPError(.connectionClosed(replyCode: close.code), operation: operation(), detail: close.text)
        default:
            throw AMQPError(.protocolViolation, operation: operation(), detail: "unexpected answer")
        }
        throw AMQPError(.protocolViolation, operation: operation(), detail: "no answer")
    }

    /// Answers the broker's connection close. Ignores errors: the broker closes the socket anyway.
    func answerClose() {
        var answer = amqp_connection_close_ok_t()
        _ = amqp_send_method(state, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &answer)
    }

    /// Answers the broker's close of the working channel.
    func answerChannelClose() throws(AMQPError) {
        var answer = amqp_channel_close_ok_t()
        try check(amqp_send_method(state, Self.channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &answer), "close a channel")
    }

    /// Sleeps until the socket is readable.
    func waitReadable(_ timeout: Duration) {
        guard !hasBufferedFrames else { return }
        var socket = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&socket, 1, Int32(clamping: timeout.components.seconds * 1000 + 1))
    }

    /// Answers `channel.flow`. Only old brokers send it.
    func answerFlow(active: Bool) throws(AMQPError) {
        var answer = amqp_channel_flow_ok_t(active: active ? 1 : 0)
        try check(amqp_send_method(state, Self.channel, AMQP_CHANNEL_FLOW_OK_METHOD, &answer), "answer channel.flow")
    }

    /// Closes the connection, so that the broker does not log a broken connection. Ignores errors; waits at most 2 s.
    func close() {
        var timeout = timeval(tv_sec: 2, tv_usec: 0)
        amqp_set_rpc_timeout(state, &timeout)
        _ = amqp_connection_close(state, AMQP_REPLY_SUCCESS)
    }
}

extension AMQPError {
    /// - Parameter status: A negative `amqp_status_enum`.
    init(status: Int32, operation: String) {
        let code: Code =
            switch amqp_status_enum(rawValue: status) {
            case AMQP_STATUS_TIMEOUT: .timeout
            case AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED: .unreachable
            case AMQP_STATUS_SSL_ERROR, AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED, AMQP_STATUS_SSL_PEER_VERIFY_FAILED,
                AMQP_STATUS_SSL_CONNECTION_FAILED, AMQP_STATUS_SSL_SET_ENGINE_FAILED:
                .tls
            case AMQP_STATUS_HEARTBEAT_TIMEOUT, AMQP_STATUS_CONNECTION_CLOSED, AMQP_STATUS_SOCKET_ERROR,
                AMQP_STATUS_SOCKET_CLOSED, AMQP_STATUS_TCP_ERROR:
                .connectionLost
            default: .protocolViolation
            }
        self.init(code, operation: operation, detail: String(cString: amqp_error_string2(status)))
    }
}
