package import Providers
package import PushProtocol

/// Sends requests to a provider. Implemented over HTTP/2, and by tests.
package protocol ProviderTransport: Sendable {
    /// The number of times that the connections were replaced; see ``reconnect(from:)``.
    var generation: Int { get }

    /// Sends all requests of `batch` and waits for the last response.
    ///
    /// - Parameters:
    ///   - deadline: the longest wait of a request for a stream, and again for its response.
    ///   - conditions: decide which requests end unsent.
    /// - Returns: The responses, in the order of the requests.
    func send(
        _ batch: ProviderRequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportResult]

    /// Replaces the connections, unless they were replaced since `generation`.
    ///
    /// Requests in flight finish on the old ones. Waiting requests end as `outdated`.
    func reconnect(from generation: Int)
}

/// Callbacks of a transport while the requests of a batch wait for streams. Called on any thread; must be fast.
package struct SendConditions: Sendable {
    /// Called with each response's status. False ends all unsent requests as `withdrawn`.
    package var shouldContinue: @Sendable (_ status: Int) -> Bool = { _ in true }
    /// Called with a request's index right before it gets a stream. False ends the request as `withheld`.
    package var mayStart: @Sendable (_ index: Int) -> Bool = { _ in true }
    /// The time of day, for the TTL in bodies.
    package var now: @Sendable () -> Timestamp = { .now }
}

package typealias TransportResult = Result<ProviderResponse, TransportError>

/// Why a request has no response.
package enum TransportError: Error, Hashable, Sendable {
    /// Not sent: no connection could be opened.
    case unreachable(reason: String)
    /// The provider has not processed the request, and an immediate retry failed.
    case notProcessed(reason: String)
    /// Not sent for a local reason: too many waiting requests, or shutdown.
    case deferred(reason: String)
    /// The request may have been processed: the connection ended or the task was cancelled before the response.
    case ambiguous(reason: String)
    /// The request may have been processed: it was written, but no response came within the deadline.
    case timedOut
    /// Not sent: ``SendConditions/shouldContinue`` returned false for another response.
    case withdrawn
    /// Not sent: ``SendConditions/mayStart`` returned false.
    case withheld
    /// Not sent: the connections were replaced while it waited. Its credential may be stale, too.
    case outdated
}
