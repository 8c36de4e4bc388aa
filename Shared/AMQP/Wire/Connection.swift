internal import CRabbitMQ
internal import Glibc

/// One connection to the broker with one working channel, and the library's state behind them. Its sole owner.
///
/// **Threads.** Made, used and destroyed on one thread: the library allows nothing else. The only thing another thread
/// may touch is the socket, and only to shut it down (see ``StallGuard``).
///
/// **Memory.** Everything that comes out is copied before the library's buffers are released.
struct Connection: ~Copyable {
    /// The channel that publishes or consumes.
    static let channel: amqp_channel_t = 1
    /// The channel that asks whether something exists: the broker closes it when the answer is no.
    static let probe: amqp_channel_t = 2

    let state: amqp_connection_state_t
    /// What it is connected to, for logs and errors.
    let peer: String
    var arena = WireArena()
    private var texts = RecurringTexts()
    var probeIsOpen = false

    init(state: amqp_connection_state_t, peer: String) {
        self.state = state
        self.peer = peer
    }

    deinit { amqp_destroy_connection(state) }

    /// The socket, for `poll` and for the stall guard.
    var descriptor: Int32 { amqp_get_sockfd(state) }

    /// Whether frames are at hand that `poll` knows nothing of.
    var hasBufferedFrames: Bool { amqp_frames_enqueued(state) != 0 || amqp_data_in_buffer(state) != 0 }

    /// The next frame that is already here; nil when there is none. Also sends a heartbeat that is due and notices a
    /// peer that has been silent for too long.
    mutating func nextFrame() throws(AMQPError) -> (channel: UInt16, frame: Frame)? {
        var raw = amqp_frame_t()
        var zero = timeval()
        let status = amqp_simple_wait_frame_noblock(state, &raw, &zero)
        if status == AMQP_STATUS_TIMEOUT.rawValue { return nil }
        try check(status, "read from \(peer)")
        let frame = Frame(raw, &texts)
        amqp_maybe_release_buffers_on_channel(state, raw.channel)
        return (raw.channel, frame)
    }

    // MARK: - Calls

    /// Turns a status into an error; the one place that knows what the library's numbers mean.
    func check(_ status: Int32, _ operation: @autoclosure () -> String) throws(AMQPError) {
        guard status < 0 else { return }
        throw AMQPError(status: status, operation: operation())
    }

    /// Turns the reply of a call into an error, and answers a close of the channel.
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
            throw AMQPError(.protocolViolation, operation: operation(), detail: "an answer to nothing that was asked")
        }
        throw AMQPError(.protocolViolation, operation: operation(), detail: "no answer")
    }

    /// Agrees to the broker closing the connection. Best effort: the broker closes the socket anyway.
    func answerClose() {
        var answer = amqp_connection_close_ok_t()
        _ = amqp_send_method(state, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &answer)
    }

    /// Agrees to the broker closing the working channel.
    func answerChannelClose() throws(AMQPError) {
        var answer = amqp_channel_close_ok_t()
        try check(amqp_send_method(state, Self.channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &answer), "close a channel")
    }

    /// Sleeps until something can be read.
    func waitReadable(_ timeout: Duration) {
        guard !hasBufferedFrames else { return }
        var socket = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&socket, 1, Int32(clamping: timeout.components.seconds * 1000 + 1))
    }

    /// Agrees to `channel.flow`, which brokers of old sent.
    func answerFlow(active: Bool) throws(AMQPError) {
        var answer = amqp_channel_flow_ok_t(active: active ? 1 : 0)
        try check(amqp_send_method(state, Self.channel, AMQP_CHANNEL_FLOW_OK_METHOD, &answer), "answer channel.flow")
    }

    /// Takes leave of the broker, so that it logs no broken connection. Best effort, and quick.
    func close() {
        var patience = timeval(tv_sec: 2, tv_usec: 0)
        amqp_set_rpc_timeout(state, &patience)
        _ = amqp_connection_close(state, AMQP_REPLY_SUCCESS)
    }
}

extension AMQPError {
    /// - Parameter status: an `amqp_status_enum` below zero.
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
