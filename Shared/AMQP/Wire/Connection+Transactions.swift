internal import CRabbitMQ

// Transactions on the working channel.

extension Connection {
    /// Starts transaction mode: publishes and acknowledgements apply at the commit.
    mutating func selectTransactions() throws(AMQPError) {
        _ = amqp_tx_select(state, Self.channel)
        try check(amqp_get_rpc_reply(state), "ask for transactions")
    }

    /// Commits, and waits for `tx.commit-ok`.
    ///
    /// - Returns: The message ids of the returned messages.
    mutating func commit() throws(AMQPError) -> [String] {
        _ = amqp_tx_commit(state, Self.channel)
        try check(amqp_get_rpc_reply(state), "commit")
        var returned: [String] = []
        // The library buffers the frames that preceded the answer.
        while hasBufferedFrames, let (_, frame) = try nextFrame() {
            switch frame {
            case .header(_, let properties): returned.append(properties.messageID ?? "")
            case .returned, .body, .ack, .nack, .deliver, .cancel, .blocked, .unblocked, .flow, .heartbeat, .other:
                continue
            case .channelClose(let close):
                try answerChannelClose()
                throw AMQPError(.channelClosed(replyCode: close.code), operation: "commit", detail: close.text)
            case .connectionClose(let close):
                answerClose()
                throw AMQPError(.connectionClosed(replyCode: close.code), operation: "commit", detail: close.text)
            }
        }
        return returned
    }
}
