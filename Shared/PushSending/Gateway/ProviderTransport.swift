package import PushProtocol

/// How requests reach a provider: the seam between the gateway and HTTP/2, and where tests put a provider of their own.
package protocol ProviderTransport: Sendable {
    /// Counts the replacements of the connections; see ``reconnect(from:)``.
    var generation: Int { get }

    /// Sends every request of `batch` with the header `authorization` and waits for the last answer: each for `deadline`
    /// at most until it has a stream, and as long again for its answer. The answers come in the order of the requests.
    /// `conditions` say which of them end without being sent.
    func send(
        _ batch: RequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportAnswer]

    /// Replaces the connections, unless they were replaced since `generation`. Requests in flight finish on the old; those that
    /// wait end as `outdated`.
    func reconnect(from generation: Int)
}

/// The questions that a transport asks while the requests of a batch wait for streams. They are asked on any thread, and
/// often: the answers must be quick.
package struct SendConditions: Sendable {
    /// Asked about every answer's status. After a no, each request that has not left yet ends as `withdrawn`.
    package let goesOn: @Sendable (_ status: Int) -> Bool
    /// Asked about the request at an index right before it gets a stream. After a no, it ends as `withheld`.
    package let mayStart: @Sendable (_ index: Int) -> Bool
    /// The time of day, for bodies that say how long a push still has.
    package let now: @Sendable () -> Timestamp

    package init(
        goesOn: @escaping @Sendable (_ status: Int) -> Bool = { _ in true },
        mayStart: @escaping @Sendable (_ index: Int) -> Bool = { _ in true },
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        self.goesOn = goesOn
        self.mayStart = mayStart
        self.now = now
    }
}

package typealias TransportAnswer = Result<ProviderResponse, TransportError>

/// What went wrong below the provider's answer, told by what is known about the request.
package enum TransportError: Error, Hashable, Sendable {
    /// No connection could be had; nothing was sent.
    case unreachable(reason: String)
    /// The provider has not processed it, and sending it again at once did not help.
    case notProcessed(reason: String)
    /// Not the provider's doing: too many requests wait here, or this process stops.
    case deferred(reason: String)
    /// It may have been processed: the connection, or the wait for it, ended before the answer.
    case ambiguous(reason: String)
    /// It may have been processed: it was written, and no answer came within the deadline.
    case timedOut
    /// Not sent: the answer to another request of its batch made it pointless.
    case withdrawn
    /// Not sent: when it was about to get a stream, ``SendConditions/mayStart`` said no.
    case withheld
    /// Not sent: while it waited the connections were replaced, for a reason that its credential may share.
    case outdated
}
