internal import Logging
internal import Synchronization

/// What callers hand to the publishing thread.
final class PublisherInbox: Sendable {
    private struct Contents {
        var jobs: [PublishJob] = []
        var isClosed = false
    }

    private let contents = Mutex(Contents())

    /// False when the publisher has ended.
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

/// The out connection: publishes what callers hand over, and matches what the broker answers.
struct PublisherRole: ConnectionRole {
    let inbox: PublisherInbox
    let link: Link
    let logger: Logger
    var outbox: Outbox
    /// Bodies of returned messages are of no use.
    private var assembler = FrameAssembler(maximumBody: 0)
    private var isBlocked = false
    /// As it was *before* the inbox was last looked into: what was handed over before the end is not overlooked.
    private var ending = Link.Ending.running

    init(inbox: PublisherInbox, link: Link, logger: Logger, outbox: Outbox) {
        self.inbox = inbox
        self.link = link
        self.logger = logger
        self.outbox = outbox
    }

    mutating func opened(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        try connection.selectConfirms()
    }

    mutating func receive(_ frame: Frame, now: ContinuousClock.Instant) throws(AMQPError) {
        switch frame {
        case .ack(let tag, let multiple): try outbox.settle(tag, multiple: multiple, as: .confirmed)
        case .nack(let tag, let multiple): try outbox.settle(tag, multiple: multiple, as: .nacked)
        case .returned(let returned): try assembler.begin(returned)
        case .header(let size, let properties):
            if let content = try assembler.header(bodySize: size, properties) { returned(content) }
        case .body(let part): if let content = try assembler.body(part) { returned(content) }
        case .deliver, .cancel, .channelClose, .connectionClose, .blocked, .unblocked, .flow, .heartbeat, .other: return
        }
    }

    private mutating func returned(_ content: FrameAssembler.Content) {
        guard case .returned(let returned, let properties, _) = content else { return }
        if !outbox.returned(returned, messageID: properties.messageID) {
            logger.error(
                "the broker returned a message that was not under way",
                metadata: [
                    "exchange": "\(returned.exchange)", "text": "\(returned.text)",
                ])
        }
    }

    mutating func work(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        workDisconnected(now: now)
        while !isBlocked {
            switch outbox.next(now: now) {
            case .wait: return
            case .publish(let entry): try connection.publish(entry.message, messageID: entry.messageID)
            case .verify(let exchange):
                outbox.verified(exchange, exists: try connection.exchangeExists(exchange), now: now)
            }
        }
    }

    mutating func workDisconnected(now: ContinuousClock.Instant) {
        ending = link.ending
        for job in inbox.take() { outbox.add(job) }
    }

    mutating func lost(_ error: AMQPError, close: Frame.Close?, now: ContinuousClock.Instant) -> Recovery {
        assembler = FrameAssembler(maximumBody: 0)
        isBlocked = false
        outbox.channelLost(close, now: now)
        return close?.cause == Frame.Close.publish ? .atOnce : .backedOff
    }

    mutating func blocked(_ isBlocked: Bool) { self.isBlocked = isBlocked }

    /// Confirms are waited for.
    var hasEnough: Bool { false }

    var isFull: Bool { false }

    var deadline: ContinuousClock.Instant? {
        switch ending {
        case .running, .now: nil
        case .graceful(let deadline): deadline
        }
    }

    func isFinished(now: ContinuousClock.Instant) -> Bool {
        switch ending {
        case .running: false
        case .graceful(let deadline): outbox.isEmpty || now >= deadline
        case .now: true
        }
    }

    mutating func finish() {
        let error = AMQPError(.closed, operation: "publish", detail: "the publisher is shut down")
        for job in inbox.close() { job.fail(error) }
        outbox.fail(error)
    }
}
