import NIOCore

/// Requests that came in together, from `execute` until the last of them has ended.
///
/// `@unchecked Sendable` because its parts are never shared: the continuation is set by the calling task before it
/// puts the burst into the inbox (a lock); from then on everything that changes is only ever touched on the event
/// loop, until the continuation is resumed and all is the task's again.
final class Burst: @unchecked Sendable {
    enum Phase {
        /// Made, and not yet taken out of the inbox.
        case submitted
        /// Cancelled before it was taken out of the inbox; it ends when it is.
        case cancelled
        case taken
        /// Its task has been resumed and owns it again.
        case ended
    }

    let requests: any HTTP2Requests
    /// How long each of its requests may wait for a stream, and then for its answer.
    let patience: TimeAmount
    /// Until when they may wait for a stream.
    let deadline: NIODeadline
    var phase = Phase.submitted
    /// How many answers the client had had when it took this burst.
    var answersBefore = 0
    /// An answer said that those still waiting need not be sent.
    private(set) var isCut = false
    private(set) var calls: [Call] = []
    private var unfinished: Int
    private var continuation: UnsafeContinuation<Void, Never>?

    init(_ requests: any HTTP2Requests, patience: TimeAmount) {
        self.requests = requests
        self.patience = patience
        deadline = .now() + patience
        unfinished = requests.count
        calls.reserveCapacity(unfinished)
        for index in 0..<unfinished { calls.append(Call(self, index: index)) }
    }

    /// Called once, by the task that made the burst, before anyone else has it.
    func begin(_ continuation: UnsafeContinuation<Void, Never>) {
        self.continuation = continuation
    }

    /// Ends a burst that nobody took.
    func refuse(_ error: HTTP2Error) {
        for call in calls { call.finish(.failure(error)) }
    }

    /// One of its calls has ended.
    func finished(with answer: HTTP2Answer) {
        if case .success(let response) = answer, !isCut { isCut = !requests.goesOn(after: response.status) }
        unfinished -= 1
        guard unfinished == 0, let continuation else { return }
        self.continuation = nil
        phase = .ended
        continuation.resume()
    }

    /// Every answer, in the order of the requests. Called once, by the task that was resumed; it also undoes the cycle
    /// of burst and calls, of which a stream that was given up may still hold one.
    func takeAnswers() -> [HTTP2Answer] {
        defer { calls.removeAll() }
        return calls.map { $0.answer ?? .failure(.closed) }
    }
}
