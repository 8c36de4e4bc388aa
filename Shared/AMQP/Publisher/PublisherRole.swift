internal import Logging
internal import Synchronization

/// Publish jobs from any thread to the publisher's thread.
final class PublishJobQueue: Sendable {
    private struct Contents {
        var jobs: [PublishJob] = []
        var isClosed = false
    }

    private let contents = Mutex(Contents())

    /// Adds a job; false when the publisher has ended.
    func add(_ job: PublishJob) -> Bool {
        contents.withLock { contents in
            if !contents.isClosed { contents.jobs.append(job) }
            return !contents.isClosed
        }
    }

    func take() -> [PublishJob] {
        contents.withLock { contents in
            guard !contents.jobs.isEmpty else { return [] }
            defer { contents.jobs = [] }
            return contents.jobs
        }
    }

    func close() -> [PublishJob] {
        contents.withLock { contents in
            defer { contents.jobs = [] }
            contents.isClosed = true
            return contents.jobs
        }
    }
}

/// The publishing connection: sends the callers' messages and matches the broker's answers.
struct PublisherRole: ConnectionRole {
    let jobQueue: PublishJobQueue
    let control: ConnectionControl
    let logger: Logger
    var publishQueue: PublishQueue
    /// Drops the bodies of returned messages.
    private var assembler = FrameAssembler(maximumBody: 0)
    private var isBlocked = false
    /// When the last broker alarm on this connection ended.
    private var unblockedAt: ContinuousClock.Instant?
    /// Read before each look into the job queue, so that no job from before the shutdown is missed.
    private var shutdownState = ConnectionControl.ShutdownState.running

    init(jobQueue: PublishJobQueue, control: ConnectionControl, logger: Logger, publishQueue: PublishQueue) {
        self.jobQueue = jobQueue
        self.control = control
        self.logger = logger
        self.publishQueue = publishQueue
    }

    mutating func connectionOpened(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        try connection.selectConfirms()
    }

    mutating func receive(_ frame: Frame, now: ContinuousClock.Instant) throws(AMQPError) {
        switch frame {
        case .ack(let tag, let multiple): try publishQueue.settle(tag, multiple: multiple, as: .confirmed, now: now)
        case .nack(let tag, let multiple): try publishQueue.settle(tag, multiple: multiple, as: .nacked, now: now)
        case .returned(let returned): try assembler.begin(returned)
        case .header(let size, let properties):
            if let content = try assembler.header(bodySize: size, properties) { returned(content) }
        case .body(let part): if let content = try assembler.body(part) { returned(content) }
        case .deliver, .cancel, .channelClose, .connectionClose, .blocked, .unblocked, .flow, .heartbeat, .other: return
        }
    }

    private mutating func returned(_ content: FrameAssembler.Content) {
        guard case .returned(let returned, let properties, _) = content else { return }
        if !publishQueue.returned(returned, messageID: properties.messageID) {
            logger.error(
                "Broker returned an unknown message; ignored",
                metadata: [
                    "exchange": "\(returned.exchange)", "text": "\(returned.text)",
                    "message_id": "\(properties.messageID ?? "-")",
                    "correlation": "\(properties.correlationID ?? "-")",
                ])
        }
    }

    mutating func processCommands(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        processCommandsOffline(now: now)
        if !isBlocked, let reason = publishQueue.reasonToReopen(unblocked: unblockedAt, now: now) {
            throw AMQPError(.timeout, operation: "publish to \(connection.peer)", detail: reason)
        }
        while !isBlocked {
            switch publishQueue.next(now: now) {
            case .wait: return
            case .publish(let queued): try connection.publish(queued.message, messageID: queued.messageID)
            case .verify(let exchange):
                publishQueue.verified(exchange, exists: try connection.exchangeExists(exchange), now: now)
            }
        }
    }

    mutating func processCommandsOffline(now: ContinuousClock.Instant) {
        shutdownState = control.shutdownState
        for job in jobQueue.take() { publishQueue.add(job) }
    }

    mutating func connectionLost(_ error: AMQPError, close: Frame.Close?, now: ContinuousClock.Instant)
        -> ReconnectDelay
    {
        assembler = FrameAssembler(maximumBody: 0)
        isBlocked = false
        unblockedAt = nil
        publishQueue.channelLost(close, now: now)
        return close?.cause == Frame.Close.publish ? .immediately : .afterBackoff
    }

    mutating func setBlocked(_ isBlocked: Bool) {
        self.isBlocked = isBlocked
        if !isBlocked { unblockedAt = .now }
    }

    /// Never: callers wait for the confirms.
    var canBatchReads: Bool { false }

    var isReadingPaused: Bool { false }

    var deadline: ContinuousClock.Instant? {
        switch shutdownState {
        case .running, .now: nil
        case .graceful(let deadline): deadline
        }
    }

    func isFinished(now: ContinuousClock.Instant) -> Bool {
        switch shutdownState {
        case .running: false
        case .graceful(let deadline): publishQueue.isEmpty || now >= deadline
        case .now: true
        }
    }

    mutating func finish() {
        let error = AMQPError(.closed, operation: "publish", detail: "the publisher is shut down")
        for job in jobQueue.close() { job.fail(error) }
        publishQueue.fail(error)
    }
}
