import Logging
import NIOCore

/// The client on its event loop: the queue, the connections, the timers. Every method runs there.
///
/// All connections of a client share one event loop, so that a request crosses threads once on its way in and once
/// on its way out, and nothing here needs a lock.
final class ClientCore {
    let endpoint: HTTP2Endpoint
    /// `:scheme` and `:authority`, which every request carries.
    let destination: HTTP2FieldBlock
    let configuration: HTTP2ClientConfiguration
    let tls: ClientTLS
    let eventLoop: any EventLoop
    let logger: Logger
    /// The first stream id of every connection, when a test wants to run out of them.
    let firstStream: UInt32?
    private let inbox: ClientInbox

    private var waiting = WaitingLine<Call>()
    /// Calls in `waiting` that are not finished yet.
    private var waitingCount = 0
    /// Calls to be sent again before all others of their precedence, in their old order.
    private var returned: [Call] = []
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
        endpoint: HTTP2Endpoint, configuration: HTTP2ClientConfiguration, tls: ClientTLS, inbox: ClientInbox,
        eventLoop: any EventLoop, firstStream: UInt32?, logger: Logger
    ) {
        self.endpoint = endpoint
        destination = HTTP2FieldBlock(scheme: "https", authority: endpoint.authority)
        self.configuration = configuration
        self.tls = tls
        self.inbox = inbox
        self.eventLoop = eventLoop
        self.firstStream = firstStream
        self.logger = logger
        let pace = ConnectPace(
            interval: TimeAmount(configuration.connectInterval), backoff: TimeAmount(configuration.connectBackoff),
            maximumBackoff: TimeAmount(configuration.maximumConnectBackoff))
        pool = ConnectionPool(maximum: configuration.maximumConnections, pace: pace)
    }

    // MARK: Turns

    /// Takes what was put into the inbox: one turn for a whole burst of calls.
    func takeInbox() {
        let (bursts, cancelled) = inbox.take()
        for burst in bursts { accept(burst) }
        for burst in cancelled { cancel(burst) }
        turn()
    }

    /// Brings everything up to date after something happened: streams for waiting calls, bytes for the wire, a
    /// further connection if it is due. Never called from inside a session event.
    func turn() {
        repeat {
            assign()
            let touched = unflushed
            unflushed.removeAll(keepingCapacity: true)
            for connection in touched {
                connection.isTouched = false
                connection.flush()
            }
        } while !unflushed.isEmpty || !returned.isEmpty
        if waitingCount > 0 { grow() }
        publish()
    }

    private func assign() {
        if !returned.isEmpty {
            for call in returned.reversed() { waiting.prepend(call, call.burst.requests.precedence) }
            waitingCount += returned.count
            returned.removeAll()
        }
        guard waiting.next != nil else { return }
        let now = NIODeadline.now()
        while let call = waiting.next {
            if call.isFinished {
                waiting.dropNext()
            } else if call.burst.isCut {
                waitingCount -= 1
                call.finish(.failure(.notProcessed(Self.withdrawn)))
                waiting.dropNext()
            } else if !call.burst.requests.mayStart(call.index) {
                waitingCount -= 1
                call.finish(.failure(.notProcessed(Self.withheld)))
                waiting.dropNext()
            } else {
                guard let id = pool.takeStream(now: now), let connection = connections[id] else { return }
                waitingCount -= 1
                call.gotStream(now: now)
                open(call, on: connection)
                waiting.takeNext()
            }
        }
    }

    private static let withdrawn = HTTP2Failure(.withdrawn, "another answer made it pointless")
    private static let withheld = HTTP2Failure(.withheld, "it may not be sent any more")

    private func open(_ call: Call, on connection: ClientChannelHandler) {
        touch(connection)
        do {
            try connection.open(call)
        } catch {
            guard !error.isInvalidRequest else {
                pool.releaseStream(connection.id)
                return call.finish(.failure(.invalidRequest("a field holds control characters")))
            }
            logger.debug("no stream", metadata: ["connection": "\(connection.id)", "error": "\(error.text)"])
            pool.releaseStream(connection.id)
            drain(connection)
            connection.settle(call, stream: 0, .neverSent)
        }
    }

    /// Remembers that a connection has something to write at the end of the turn.
    private func touch(_ connection: ClientChannelHandler) {
        guard !connection.isTouched else { return }
        connection.isTouched = true
        unflushed.append(connection)
    }

    private func publish() {
        statistics.connections = pool.ready
        statistics.drainingConnections = pool.draining
        statistics.openStreams = pool.openStreams
        statistics.waiting = waitingCount
        inbox.statistics = statistics
    }

    // MARK: Calls

    private func accept(_ burst: Burst) {
        if case .cancelled = burst.phase {
            burst.refuse(.cancelled(written: false))
        } else if isShutDown {
            burst.refuse(.closed)
        } else {
            burst.phase = .taken
            burst.answersBefore = statistics.responses
            waiting.append(burst.calls, burst.requests.precedence)
            waitingCount += burst.calls.count
            if let due = deadlines.added(burst.deadline) { setDeadlineTimer(due) }
        }
    }

    private func cancel(_ burst: Burst) {
        switch burst.phase {
        case .submitted: burst.phase = .cancelled
        case .taken: for call in burst.calls { abandon(call, .cancelled(written: call.isWritten)) }
        case .cancelled, .ended: break
        }
    }

    /// Ends a call that its caller no longer waits for.
    private func abandon(_ call: Call, _ error: HTTP2Error) {
        switch call.place {
        case .waiting:
            waitingCount -= 1
        case .open(let connection, let stream):
            connection.cancel(stream: stream)
            touch(connection)
        case .finished:
            return
        }
        call.finish(.failure(error))
    }

    /// Puts a call back that was certainly not processed.
    func requeue(_ call: Call) {
        guard !isShutDown else { return call.finish(.failure(.closed)) }
        call.returnToQueue()
        statistics.resends += 1
        returned.append(call)
    }

    /// Nobody is left who could take the waiting calls, or is to take them as they are: they fail now, with the reason, rather
    /// than at their deadline. What was pointless already stays that.
    func failWaiting(_ error: HTTP2Error) {
        let failed = waiting.all + returned
        waiting.removeAll()
        returned.removeAll()
        waitingCount = 0
        for call in failed { call.finish(.failure(call.burst.isCut ? .notProcessed(Self.withdrawn) : error)) }
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
        let open = connections.values.flatMap { $0.calls.inOrder.map(\.value) }
        for calls in [waiting.all, open] {
            for call in calls where !call.isFinished {
                if call.deadline <= now {
                    leaveSilent(call, now)
                    abandon(call, overdue(call))
                } else {
                    earliest = min(earliest ?? call.deadline, call.deadline)
                }
            }
        }
        waiting.removeAll { $0.isFinished }
        if let due = deadlines.fired(now: now, earliest: earliest) { setDeadlineTimer(due) }
        turn()
    }

    /// Where others were answered while a request stood in line, the line is long and the peer is well.
    private func overdue(_ call: Call) -> HTTP2Error {
        if case .waiting = call.place, statistics.responses > call.burst.answersBefore {
            return .notProcessed(HTTP2Failure(.noStream, "others had every stream until the deadline passed"))
        }
        return .deadlineExceeded(written: call.isWritten)
    }

    /// A request went unanswered on a connection that said nothing else either. Where PINGs may not be sent, nothing but
    /// this tells that the peer is gone, and every further request there would have the same fate.
    private func leaveSilent(_ call: Call, _ now: NIODeadline) {
        guard case .open(let connection, _) = call.place, !connection.isDraining,
            connection.quietSince + TimeAmount(configuration.pingTimeout) <= now
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
                bound.value.turn()
            }
            growthTimer = (due, task)
        }
    }

    /// A connection is gone, with all its calls settled.
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
        if !connection.isReady && !pool.hasProspects { failWaiting(.notProcessed(failure)) }
        turn()
        finishShutdown()
    }

    // MARK: End

    /// Refuses what comes, fails what waits, lets open streams end by their deadlines, closes connections.
    func shutDown(_ promise: EventLoopPromise<Void>) {
        isShutDown = true
        shutdowns.append(promise)
        growthTimer?.task.cancel()
        takeInbox()
        failWaiting(.closed)
        for (id, connection) in connections {
            if connection.context == nil {
                // Still between look-up and TCP: whatever comes of it is closed when it comes.
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
