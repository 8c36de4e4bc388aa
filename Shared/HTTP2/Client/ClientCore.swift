import Logging
import NIOCore

/// The client's state on its event loop: queue, connections and timers. Every method runs on that loop.
///
/// All connections of a client share one event loop: no locks, and one thread hop each for request and response.
final class ClientCore {
    let endpoint: HTTP2Endpoint
    /// `:scheme` and `:authority`, which every request carries.
    let destination: HTTP2FieldBlock
    let configuration: HTTP2ClientConfiguration
    let tls: ClientTLS
    let mayConnect: HTTP2Client.AddressCheck?
    let eventLoop: any EventLoop
    let logger: Logger
    /// The first stream id of every connection; set only by tests of id exhaustion.
    let firstStream: UInt32?
    private let inbox: ClientInbox

    private var waiting = PendingRequestQueue<PendingRequest>()
    private var waitingCount = 0
    /// Requests to resend before all others of their priority, in their old order.
    private var returned: [PendingRequest] = []
    var pool: ConnectionPool
    var connections: [ConnectionPool.ID: ClientChannelHandler] = [:]
    private var unflushed: [ClientChannelHandler] = []
    private var deadlines = DeadlineSchedule()
    private var deadlineTimer: Scheduled<Void>?
    private var growthTimer: (due: NIODeadline, task: Scheduled<Void>)?
    var statistics = HTTP2ClientStatistics()
    private(set) var isShutDown = false
    private var shutdowns: [EventLoopPromise<Void>] = []

    init(
        endpoint: HTTP2Endpoint, configuration: HTTP2ClientConfiguration, tls: ClientTLS,
        mayConnect: HTTP2Client.AddressCheck? = nil, inbox: ClientInbox, eventLoop: any EventLoop,
        firstStream: UInt32?, logger: Logger
    ) {
        self.endpoint = endpoint
        destination = HTTP2FieldBlock(scheme: "https", authority: endpoint.authority)
        self.configuration = configuration
        self.tls = tls
        self.mayConnect = mayConnect
        self.inbox = inbox
        self.eventLoop = eventLoop
        self.firstStream = firstStream
        self.logger = logger
        let backoff = ConnectBackoff(
            interval: TimeAmount(configuration.connectInterval), backoff: configuration.connectBackoff)
        pool = ConnectionPool(maximum: configuration.maximumConnections, backoff: backoff)
    }

    // MARK: Queue

    /// Takes all submissions and cancellations out of the inbox and processes them in one pass.
    func takeInbox() {
        let (groups, cancelled) = inbox.take()
        for group in groups { accept(group) }
        for group in cancelled { cancel(group) }
        processQueue()
    }

    /// Assigns streams to waiting requests, flushes connections, and opens another connection if one is due. Never
    /// called from within a session callback.
    func processQueue() {
        repeat {
            assign()
            let touched = unflushed
            unflushed.removeAll(keepingCapacity: true)
            for connection in touched {
                connection.needsFlush = false
                connection.flush()
            }
        } while !unflushed.isEmpty || !returned.isEmpty
        if waitingCount > 0 { grow() }
        publish()
    }

    private func assign() {
        if !returned.isEmpty {
            for request in returned.reversed() { waiting.prepend(request, request.group.requests.priority) }
            waitingCount += returned.count
            returned.removeAll()
        }
        guard waiting.next != nil else { return }
        let now = NIODeadline.now()
        while let request = waiting.next {
            if request.isFinished {
                waiting.dropNext()
            } else if request.group.isWithdrawn {
                waitingCount -= 1
                request.finish(.failure(.notProcessed(Self.withdrawn)))
                waiting.dropNext()
            } else if !request.group.requests.mayStart(request.index) {
                waitingCount -= 1
                request.finish(.failure(.notProcessed(Self.withheld)))
                waiting.dropNext()
            } else {
                guard let id = pool.takeStream(now: now), let connection = connections[id] else { return }
                waitingCount -= 1
                request.streamAssigned(now: now)
                open(request, on: connection)
                waiting.takeNext()
            }
        }
    }

    private static let withdrawn = HTTP2Failure(.withdrawn, "another response of its group withdrew it")
    private static let withheld = HTTP2Failure(.withheld, "the caller withheld it")

    private func open(_ request: PendingRequest, on connection: ClientChannelHandler) {
        markForFlush(connection)
        do {
            try connection.open(request)
        } catch {
            guard !error.isInvalidRequest else {
                pool.releaseStream(connection.id)
                return request.finish(.failure(.invalidRequest("a field contains control characters")))
            }
            logger.debug(
                "opening a stream failed; draining the connection",
                metadata: ["connection": "\(connection.id)", "error": "\(error.text)"])
            pool.releaseStream(connection.id)
            drain(connection)
            connection.settle(request, stream: 0, .neverSent)
        }
    }

    /// Adds a connection to the flush list.
    private func markForFlush(_ connection: ClientChannelHandler) {
        guard !connection.needsFlush else { return }
        connection.needsFlush = true
        unflushed.append(connection)
    }

    private func publish() {
        statistics.connections = pool.ready
        statistics.drainingConnections = pool.draining
        statistics.openStreams = pool.openStreams
        statistics.waiting = waitingCount
        inbox.statistics = statistics
    }

    // MARK: Requests

    private func accept(_ group: RequestGroup) {
        if case .cancelled = group.phase {
            group.failAll(.cancelled(written: false))
        } else if isShutDown {
            group.failAll(.closed)
        } else {
            group.phase = .taken
            group.responsesAtStart = statistics.responses
            waiting.append(group.members, group.requests.priority)
            waitingCount += group.members.count
            if let due = deadlines.added(group.deadline) { setDeadlineTimer(due) }
        }
    }

    private func cancel(_ group: RequestGroup) {
        switch group.phase {
        case .submitted: group.phase = .cancelled
        case .taken: for request in group.members { abandon(request, .cancelled(written: request.isWritten)) }
        case .cancelled, .ended: break
        }
    }

    /// Ends a cancelled or overdue request and resets its stream.
    private func abandon(_ request: PendingRequest, _ error: HTTP2Error) {
        switch request.state {
        case .waiting:
            waitingCount -= 1
        case .open(let connection, let stream):
            connection.cancel(stream: stream)
            markForFlush(connection)
        case .finished:
            return
        }
        request.finish(.failure(error))
    }

    /// Requeues a request that was certainly not processed.
    func requeue(_ request: PendingRequest) {
        guard !isShutDown else { return request.finish(.failure(.closed)) }
        request.resetForResend()
        statistics.resends += 1
        returned.append(request)
    }

    /// Fails all waiting requests at once instead of at their deadlines. Withdrawn ones keep the reason `withdrawn`.
    func failWaiting(_ error: HTTP2Error) {
        let failed = waiting.all + returned
        waiting.removeAll()
        returned.removeAll()
        waitingCount = 0
        for request in failed {
            request.finish(.failure(request.group.isWithdrawn ? .notProcessed(Self.withdrawn) : error))
        }
    }

    // MARK: Deadlines

    private func setDeadlineTimer(_ due: NIODeadline) {
        deadlineTimer?.cancel()
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        deadlineTimer = eventLoop.scheduleTask(deadline: due) { bound.value.deadlinePassed() }
    }

    private func deadlinePassed() {
        let now = NIODeadline.now()
        var earliest: NIODeadline?
        let open = connections.values.flatMap { $0.openRequests.inOrder.map(\.value) }
        for requests in [waiting.all, open] {
            for request in requests where !request.isFinished {
                if request.deadline <= now {
                    drainIfSilent(request, now)
                    abandon(request, deadlineError(request))
                } else {
                    earliest = min(earliest ?? request.deadline, request.deadline)
                }
            }
        }
        waiting.removeAll { $0.isFinished }
        if let due = deadlines.fired(now: now, earliest: earliest) { setDeadlineTimer(due) }
        processQueue()
    }

    /// Returns `noStream` for a request that never got a stream while others were answered: the queue is long, and the
    /// peer is responsive.
    private func deadlineError(_ request: PendingRequest) -> HTTP2Error {
        if case .waiting = request.state, statistics.responses > request.group.responsesAtStart {
            return .notProcessed(HTTP2Failure(.noStream, "no stream was free before the deadline"))
        }
        return .deadlineExceeded(written: request.isWritten)
    }

    /// Drains a connection on which a request passed its deadline and nothing else was read. Without PINGs, this is the
    /// only detection of a dead peer.
    private func drainIfSilent(_ request: PendingRequest, _ now: NIODeadline) {
        guard case .open(let connection, _) = request.state, !connection.isDraining,
            connection.idleSince + TimeAmount(configuration.pingTimeout) <= now
        else { return }
        drain(connection)
    }

    // MARK: Growth

    private func grow() {
        guard !isShutDown else { return }
        switch pool.grow(now: .now()) {
        case .none:
            break
        case .connect(let id):
            connect(id)
        case .later(let due):
            if let growthTimer, growthTimer.due <= due { return }
            growthTimer?.task.cancel()
            let bound = NIOLoopBound(self, eventLoop: eventLoop)
            let task = eventLoop.scheduleTask(deadline: due) {
                bound.value.growthTimer = nil
                bound.value.processQueue()
            }
            growthTimer = (due, task)
        }
    }

    /// Removes an ended connection whose requests are all settled.
    func ended(_ connection: ClientChannelHandler, _ failure: HTTP2Failure) {
        guard connections.removeValue(forKey: connection.id) != nil else { return }
        pool.remove(connection.id, now: .now(), random: .random(in: 0..<1))
        if connection.isReady {
            statistics.connectionsClosed += 1
        } else {
            statistics.connectFailures += 1
        }
        if !connection.isDraining || !connection.isReady {
            statistics.lastFailure = failure
            logger.debug(
                "connection lost", metadata: ["connection": "\(connection.id)", "failure": "\(failure)"])
        }
        if !connection.isReady && !pool.canServeRequests { failWaiting(.notProcessed(failure)) }
        processQueue()
        finishShutdown()
    }

    // MARK: Shutdown

    /// Refuses new requests, fails waiting ones, waits for open streams until their deadlines, closes connections.
    func shutDown(_ promise: EventLoopPromise<Void>) {
        isShutDown = true
        shutdowns.append(promise)
        growthTimer?.task.cancel()
        takeInbox()
        failWaiting(.closed)
        for (id, connection) in connections {
            if connection.context == nil {
                // Still connecting: `connected` closes the channel.
                connections[id] = nil
                pool.remove(id, now: .now(), random: 0)
            } else if connection.isReady {
                drain(connection)
            } else {
                connection.end(HTTP2Failure(.connectFailed, "the client was shut down"))
            }
        }
        publish()
        finishShutdown()
    }

    private func finishShutdown() {
        guard isShutDown, connections.isEmpty else { return }
        deadlineTimer?.cancel()
        for promise in shutdowns { promise.succeed() }
        shutdowns.removeAll()
    }
}
