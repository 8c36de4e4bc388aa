package import Logging
package import NIOCore
import NIOPosix

/// Multiplexed HTTP/2 requests to one endpoint, over a small pool of long-lived connections.
///
/// Requests wait for a stream as the peer's SETTINGS allow. A request that was certainly not processed (refused, above
/// a GOAWAY's last stream, not fully written when the connection ended) is resent transparently. Every other failure is
/// an `HTTP2Error`. The first request opens the first connection. Call `shutdown`;
/// until then the connections stay open.
package final class HTTP2Client: Sendable {
    /// Runs all connections. Tasks that await responses on this loop change no threads (``EventLoopExecutor``).
    package let eventLoop: any EventLoop
    let inbox: ClientInbox
    private let maximumWaiting: Int
    /// Used on `eventLoop` only; the box checks it.
    private let core: NIOLoopBoundBox<ClientCore>

    /// Decides whether a connection may be opened to an address of 4 or 16 bytes in network order. Called on the event
    /// loop, for each address that the host's name resolves to, before the connection.
    package typealias AddressCheck = @Sendable (_ address: [UInt8]) -> Bool

    /// Creates a client; throws `invalidConfiguration` when the endpoint's certificate files are missing or malformed.
    ///
    /// - Parameter mayConnect: refuses addresses. If it refuses all, requests fail with the code `addressRefused`.
    package convenience init(
        endpoint: HTTP2Endpoint, configuration: HTTP2ClientConfiguration = .init(), mayConnect: AddressCheck? = nil,
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger
    ) throws(HTTP2Error) {
        try self.init(
            endpoint: endpoint, configuration: configuration, mayConnect: mayConnect, eventLoopGroup: eventLoopGroup,
            firstStream: nil, logger: logger)
    }

    init(
        endpoint: HTTP2Endpoint, configuration: HTTP2ClientConfiguration, mayConnect: AddressCheck? = nil,
        eventLoopGroup: any EventLoopGroup, firstStream: UInt32?, logger: Logger
    ) throws(HTTP2Error) {
        let tls = try ClientTLS(endpoint: endpoint)
        let (eventLoop, inbox) = (eventLoopGroup.next(), ClientInbox())
        self.eventLoop = eventLoop
        self.inbox = inbox
        maximumWaiting = configuration.maximumWaiting
        core = .makeBoxSendingValue(
            ClientCore(
                endpoint: endpoint, configuration: configuration, tls: tls, mayConnect: mayConnect, inbox: inbox,
                eventLoop: eventLoop, firstStream: firstStream, logger: logger),
            eventLoop: eventLoop)
    }

    /// Sends all `requests` and returns their results, in the order of the requests, once the last has ended. A response
    /// of any status is a result.
    ///
    /// `deadline` applies to each request twice: from now until it has a stream, and from its first stream to the end of
    /// the response, resends included. A request that waited long for a stream so still has the full time for its
    /// response. At the deadline, or when the task is cancelled, open streams are reset with CANCEL.
    package func execute(all requests: some HTTP2Requests, deadline: Duration) async -> [HTTP2Result] {
        guard requests.count > 0 else { return [] }
        let group = RequestGroup(requests, timeout: TimeAmount(deadline))
        var refusal: HTTP2Error?
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                group.begin(continuation)
                refusal = submit(group)
                // A concurrent cancellation of a refused group is harmless: the event loop changes only its phase.
                if refusal != nil { continuation.resume() }
            }
        } onCancel: {
            if inbox.cancel(group) { wake() }
        }
        let answers = group.takeResults()
        return refusal.map { Array(repeating: .failure($0), count: requests.count) } ?? answers
    }

    /// Counters and gauges as of the event loop's last pass.
    package var statistics: HTTP2ClientStatistics { inbox.statistics }

    /// Drains all connections and sends further requests on new ones. Requests without a stream end as `notProcessed`
    /// with the code `retired`. For changed or revoked credentials: APNs binds a connection to its first token.
    package func retireConnections() {
        eventLoop.execute { self.core.value.retireConnections() }
    }

    /// Refuses further requests, fails waiting ones with `closed`, waits for open streams until their responses or
    /// deadlines, and closes the connections. Idempotent.
    package func shutdown() async {
        inbox.close()
        let promise = eventLoop.makePromise(of: Void.self)
        eventLoop.execute { self.core.value.shutDown(promise) }
        // The promise fails only if the event loop was shut down before; the connections are closed in both cases.
        try? await promise.futureResult.get()
    }

    private func submit(_ group: RequestGroup) -> HTTP2Error? {
        switch inbox.put(group, maximum: maximumWaiting) {
        case .admitted(let isFirst):
            if isFirst { wake() }
            return nil
        case .full:
            return .notProcessed(HTTP2Failure(.queueFull, "\(maximumWaiting) requests wait for a stream already"))
        case .closed:
            return .closed
        }
    }

    private func wake() {
        eventLoop.execute { self.core.value.takeInbox() }
    }
}
