package import Logging
package import NIOCore
import NIOPosix

/// Multiplexed HTTP/2 requests to one endpoint, over a small pool of long-lived connections.
///
/// Requests queue until a connection has a stream for them, as the peer's SETTINGS allow at that moment. What was
/// certainly not processed (refused, above a GOAWAY's last stream, cut off before it was fully written) is sent again
/// by itself; everything else ends in an `HTTP2Error` that says whether resending is safe. No connection is made
/// before the first request. A client must be shut down; until then its connections stay open.
package final class HTTP2Client: Sendable {
    /// Has all its connections; who awaits answers there changes no thread (``EventLoopExecutor``).
    package let eventLoop: any EventLoop
    let inbox: ClientInbox
    private let maximumWaiting: Int
    /// Touched only on `eventLoop`, which the box checks.
    private let core: NIOLoopBoundBox<ClientCore>

    /// Prepares a client; throws `invalidConfiguration` when the endpoint's certificate files cannot be used.
    package convenience init(
        endpoint: HTTP2Endpoint, configuration: HTTP2ClientConfiguration = .init(),
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger
    ) throws(HTTP2Error) {
        try self.init(
            endpoint: endpoint, configuration: configuration, eventLoopGroup: eventLoopGroup, firstStream: nil,
            logger: logger)
    }

    init(
        endpoint: HTTP2Endpoint, configuration: HTTP2ClientConfiguration, eventLoopGroup: any EventLoopGroup,
        firstStream: UInt32?, logger: Logger
    ) throws(HTTP2Error) {
        let tls = try ClientTLS(endpoint: endpoint)
        let (eventLoop, inbox) = (eventLoopGroup.next(), ClientInbox())
        self.eventLoop = eventLoop
        self.inbox = inbox
        maximumWaiting = configuration.maximumWaiting
        core = .makeBoxSendingValue(
            ClientCore(
                endpoint: endpoint, configuration: configuration, tls: tls, inbox: inbox, eventLoop: eventLoop,
                firstStream: firstStream, logger: logger),
            eventLoop: eventLoop)
    }

    /// Sends `request` and waits for the whole response, whatever its status.
    ///
    /// `deadline` counts from now and covers the wait for a connection and a stream, and once more from the first stream
    /// on: it then covers all transparent resends and the response. Whoever had to wait for a stream is not cut off in the
    /// middle of the answer. When it passes, the stream is reset with CANCEL. Cancelling the task does the same at once.
    package func execute(
        _ request: HTTP2Request, deadline: Duration
    ) async throws(HTTP2Error) -> HTTP2Response {
        try request.check()
        return try await execute(all: request, deadline: deadline)[0].get()
    }

    /// Sends all of `requests` and waits for the last of their answers, which come in the order of the requests.
    ///
    /// `deadline` counts for each of them as for one. Cancelling the task ends those that are left.
    package func execute(all requests: some HTTP2Requests, deadline: Duration) async -> [HTTP2Answer] {
        guard requests.count > 0 else { return [] }
        let burst = Burst(requests, patience: TimeAmount(deadline))
        var refusal: HTTP2Error?
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                burst.begin(continuation)
                refusal = submit(burst)
                // A cancellation of a refused burst may reach the event loop at the same time: it touches the phase only.
                if refusal != nil { continuation.resume() }
            }
        } onCancel: {
            if inbox.cancel(burst) { wake() }
        }
        let answers = burst.takeAnswers()
        return refusal.map { Array(repeating: .failure($0), count: requests.count) } ?? answers
    }

    /// What the client has done and has open.
    package var statistics: HTTP2ClientStatistics { inbox.statistics }

    /// Sends every further request on new connections; the present ones finish what they have and close, and requests that
    /// have no stream yet end as not processed (`retired`). For a changed or revoked credential, which providers bind to the
    /// connection.
    package func retireConnections() {
        eventLoop.execute { self.core.value.retireConnections() }
    }

    /// Refuses further requests, fails waiting ones with `closed`, waits for those in flight until they are answered
    /// or reach their deadline, and closes the connections. Idempotent.
    package func shutdown() async {
        inbox.close()
        let promise = eventLoop.makePromise(of: Void.self)
        eventLoop.execute { self.core.value.shutDown(promise) }
        // The promise only succeeds, or fails when the event loop itself was shut down before: closed either way.
        try? await promise.futureResult.get()
    }

    private func submit(_ burst: Burst) -> HTTP2Error? {
        switch inbox.put(burst, maximum: maximumWaiting) {
        case .admitted(let isFirst):
            if isFirst { wake() }
            return nil
        case .full:
            return .notProcessed(HTTP2Failure(.queueFull, "\(maximumWaiting) requests are waiting already"))
        case .closed:
            return .closed
        }
    }

    private func wake() {
        eventLoop.execute { self.core.value.takeInbox() }
    }
}
