internal import Synchronization

/// One call of `publish`: its messages and their confirmations so far.
///
/// Created on the caller's thread, settled on the connection's thread, failed on any thread. The first of these calls
/// the completion once, outside the lock.
final class PublishJob: Sendable {
    typealias Completion = @Sendable (Result<[AMQPConfirmation], AMQPError>) -> Void

    private struct State {
        var confirmations: [AMQPConfirmation?]
        var remaining: Int
        var completion: Completion?
    }

    let messages: [AMQPMessage]
    private let state: Mutex<State>

    init(_ messages: [AMQPMessage], completion: @escaping Completion) {
        self.messages = messages
        state = Mutex(
            State(
                confirmations: Array(repeating: nil, count: messages.count), remaining: messages.count,
                completion: completion))
    }

    /// Settles the messages that cannot be encoded, so that they do not affect others.
    func refuseUnencodable() {
        for (index, message) in messages.enumerated() {
            if let fault = message.encodingFault { settle(index, .returned(code: fault.code, text: fault.text)) }
        }
    }

    /// Whether this message needs no further action.
    func isSettled(_ index: Int) -> Bool {
        state.withLock { $0.completion == nil || $0.confirmations[index] != nil }
    }

    /// Records the first confirmation of a message. A return precedes the confirm of the same message.
    func settle(_ index: Int, _ confirmation: AMQPConfirmation) {
        let ended: (Completion, [AMQPConfirmation])? = state.withLock { state in
            guard let completion = state.completion, state.confirmations[index] == nil else { return nil }
            state.confirmations[index] = confirmation
            state.remaining -= 1
            guard state.remaining == 0 else { return nil }
            state.completion = nil
            return (completion, state.confirmations.compactMap(\.self))
        }
        if let (completion, confirmations) = ended { completion(.success(confirmations)) }
    }

    /// Ends the job without confirmations. Some messages may have been published.
    func fail(_ error: AMQPError) {
        let completion = state.withLock { state in
            defer { state.completion = nil }
            return state.completion
        }
        completion?(.failure(error))
    }
}
