import NIOCore

/// The requests of one `execute` call, from submission until the last of them has ended.
///
/// `@unchecked Sendable`: the calling task sets the continuation before it puts the group into the inbox (a lock). From
/// then on only the event loop touches mutable state, until it resumes the continuation and the task owns the group
/// again.
final class RequestGroup: @unchecked Sendable {
    enum Phase {
        /// Created, not yet taken out of the inbox.
        case submitted
        /// Cancelled before it was taken out of the inbox; it ends once it is.
        case cancelled
        case taken
        /// The calling task was resumed and owns the group again.
        case ended
    }

    let requests: any HTTP2Requests
    /// How long each request may wait for a stream, and then again for its response.
    let timeout: TimeAmount
    /// The deadline for getting a stream.
    let deadline: NIODeadline
    var phase = Phase.submitted
    /// The client's response count when it took this group.
    var responsesAtStart = 0
    /// Whether a response withdrew the requests that still wait for a stream.
    private(set) var isWithdrawn = false
    private(set) var members: [PendingRequest] = []
    private var unfinished: Int
    private var continuation: UnsafeContinuation<Void, Never>?

    init(_ requests: any HTTP2Requests, timeout: TimeAmount) {
        self.requests = requests
        self.timeout = timeout
        deadline = .now() + timeout
        unfinished = requests.count
        members.reserveCapacity(unfinished)
        for index in 0..<unfinished { members.append(PendingRequest(self, index: index)) }
    }

    /// Sets the continuation. Called once, by the calling task, before it submits the group.
    func begin(_ continuation: UnsafeContinuation<Void, Never>) {
        self.continuation = continuation
    }

    /// Fails every request of a group that never started.
    func failAll(_ error: HTTP2Error) {
        for member in members { member.finish(.failure(error)) }
    }

    /// Counts one ended request; resumes the caller after the last.
    func memberFinished(_ result: HTTP2Result) {
        if case .success(let response) = result, !isWithdrawn {
            isWithdrawn = !requests.shouldContinue(after: response.status)
        }
        unfinished -= 1
        guard unfinished == 0, let continuation else { return }
        self.continuation = nil
        phase = .ended
        continuation.resume()
    }

    /// Returns all results in the order of the requests. Called once, by the resumed task. Also breaks the reference
    /// cycle between group and members, of which a cancelled stream may still hold one.
    func takeResults() -> [HTTP2Result] {
        defer { members.removeAll() }
        return members.map { $0.result ?? .failure(.closed) }
    }
}
