package import AMQP
package import Logging
package import PushProtocol
package import ServiceLifecycle
internal import FoundationEssentials
internal import Metrics
internal import Synchronization

/// Reads a stream from its oldest message to its end, then follows it, also after reconnects. Resumes by offset, so an
/// interruption loses no message. A message that is delivered twice is applied twice.
///
/// The reader finds the end with marks: it publishes a marker message (`StreamName`) and reads until it receives it.
/// It publishes one at each attachment, every few seconds until the first is read, and every few minutes later. A
/// missing mark shows that the stream no longer delivers.
package final class StreamReader: Service, Sendable {
    /// The interval between marks after the first one was read.
    static let markInterval = Duration.seconds(240)
    /// ``Status/interrupted(_:)`` when the stream was last read to its end longer ago than this.
    static let maximumAge = Duration.seconds(600)
    private static let prefetch: UInt16 = 2000
    private static let checkInterval = Duration.seconds(5)
    /// How long a reattached stream may deliver nothing. The same stream delivers its last message immediately. In a
    /// redeclared stream the broker waits until the old offset is reached.
    private static let resumeTimeout = Duration.seconds(10)
    /// The time limit for a mark's confirm. The broker may never confirm a mark published while the stream is deleted.
    private static let confirmDeadline = Duration.seconds(10)

    package enum Status: Hashable, Sendable {
        /// Not yet read to its end; with the reason if known.
        case reading(String?)
        case following
        /// Read to its end before, but not up to date.
        case interrupted(String)
    }

    private struct SharedState {
        var progress = StreamProgress()
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isOver = false
        /// Whether the subscription was cancelled in order to attach again.
        var isReattaching = false
    }

    private let stream: StreamName
    private let service: String
    private let consumer: AMQPConsumer
    private let publisher: AMQPPublisher
    private let logger: Logger
    private let apply: @Sendable ([[UInt8]]) -> Void
    private let onGap: @Sendable () -> Void
    private let state = Mutex(SharedState())
    private let subscription: Mutex<AMQPSubscription?> = .init(nil)
    /// Requests to publish a mark.
    private let requests: AsyncStream<Void>
    private let request: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - consumer: Use one consumer per stream, because a fault of a stream can close its connection.
    ///   - apply: Receives the bodies in order, on the reader's task.
    ///   - onGap: Called when messages may be missing, before the first message after the gap is applied.
    package init(
        _ stream: StreamName, service: String, consumer: AMQPConsumer, publisher: AMQPPublisher, logger: Logger,
        apply: @escaping @Sendable ([[UInt8]]) -> Void, onGap: @escaping @Sendable () -> Void = {}
    ) {
        self.stream = stream
        self.service = service
        self.consumer = consumer
        self.publisher = publisher
        self.logger = logger
        self.apply = apply
        self.onGap = onGap
        (requests, request) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Runs until graceful shutdown, or until the consumer ends.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.markOnRequest() }
                group.addTask { await self.monitor() }
                await self.follow()
                group.cancelAll()
            }
        }
        state.withLock { $0.isOver = true }
        wakeAll()
    }

    /// Reads until the consumer or the task ends. Starts over when the stream was deleted and redeclared.
    private func follow() async {
        while true {
            let subscription = consumer.read(stream: stream.rawValue, prefetch: Self.prefetch) { [self] in
                request.yield()
                return state.withLock { $0.progress.start() }
            }
            self.subscription.withLock { $0 = subscription }
            var isAnother = false
            for await burst in subscription.deliveries where !take(burst) {
                isAnother = true
                break
            }
            await subscription.cancel()
            let isReattaching = state.withLock { state in
                defer { state.isReattaching = false }
                return state.isReattaching
            }
            guard isAnother || isReattaching, !Task.isCancelled else { return }
            logger.notice(
                "Stream was redeclared; reading it from its beginning", metadata: [LogKey.stream: "\(stream.rawValue)"])
        }
    }

    /// Waits until the stream was read to its end.
    ///
    /// - Returns: False when the reader ended before, or the task was cancelled.
    package func caughtUp() async -> Bool {
        await withTaskCancellationHandler {
            while true {
                let answer = state.withLock { state -> Bool? in
                    if state.progress.readUntil != nil { return true }
                    return Task.isCancelled || state.isOver ? false : nil
                }
                if let answer { return answer }
                await withCheckedContinuation { continuation in
                    let isOver = state.withLock { state in
                        if Task.isCancelled || state.isOver || state.progress.readUntil != nil { return true }
                        state.waiting.append(continuation)
                        return false
                    }
                    if isOver { continuation.resume() }
                }
            }
        } onCancel: {
            wakeAll()
        }
    }

    /// Resumes the tasks in ``caughtUp()``.
    private func wakeAll() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    package var status: Status {
        let problem: String? =
            switch subscription.withLock({ $0?.state }) {
            case .waiting(_, let error): error.map { "\(stream.rawValue) cannot be read: \($0)" }
            case .cancelled: "the subscription to \(stream.rawValue) ended"
            case .active, nil: nil
            }
        guard let age else { return .reading(problem) }
        if let problem { return .interrupted(problem) }
        return age > Self.maximumAge
            ? .interrupted("\(stream.rawValue) was last read to its end \(age) ago") : .following
    }

    /// The time since the stream was last read to its end; `nil` before the first time.
    private var age: Duration? { state.withLock { $0.progress.readUntil }.map { .now - $0 } }

    /// - Returns: Whether the messages belong to the stream read so far.
    private func take(_ burst: [AMQPDelivery]) -> Bool {
        let isSame = state.withLock { state in
            burst.allSatisfy { delivery in
                guard let offset = delivery.streamOffset else { return true }
                return state.progress.record(.init(offset: offset, id: delivery.properties.messageID))
            }
        }
        guard isSame else { return false }
        if state.withLock({ $0.progress.takeGap() }) { onGap() }
        var rest: [[UInt8]] = []
        rest.reserveCapacity(burst.count)
        var marks: [String] = []
        for delivery in burst {
            if delivery.exchange == ExchangeName.marks.name {
                if let id = delivery.properties.messageID { marks.append(id) }
            } else if !stream.accepts(exchange: delivery.exchange, routingKey: delivery.routingKey) {
                logger.warning(
                    "Stream message with an unexpected routing key; ignored",
                    metadata: metadata(of: delivery))
            } else if delivery.omittedBytes == 0 {
                rest.append(delivery.body)
            } else {
                logger.warning(
                    "Stream message exceeds the size limit; ignored",
                    metadata: metadata(of: delivery))
            }
        }
        // Before the marks: a mark stands for all earlier messages.
        if !rest.isEmpty {
            apply(rest)
            Counter(label: "heliograph_stream_read_total", dimensions: [("stream", stream.rawValue)])
                .increment(by: rest.count)
        }
        consumer.acknowledge(burst.map(\.tag))
        guard !marks.isEmpty else { return true }
        let isFirst = state.withLock { state in marks.reduce(false) { state.progress.recordMark($1) || $0 } }
        guard isFirst else { return true }
        wakeAll()
        logger.info("Stream read to its end; following it", metadata: [LogKey.stream: "\(stream.rawValue)"])
        return true
    }

    private func metadata(of delivery: AMQPDelivery) -> Logger.Metadata {
        delivery.logMetadata.merging([
            LogKey.stream: "\(stream.rawValue)", LogKey.routingKey: "\(delivery.routingKey)",
        ]) { $1 }
    }

    private func markOnRequest() async {
        for await _ in requests { await mark() }
    }

    /// Publishes a mark and retries until it is confirmed.
    private func mark() async {
        var lastReported: String?
        while !Task.isCancelled {
            // A new id for each attempt: the publisher sends no second message with the id of an unconfirmed one, and
            // all later messages would wait behind it.
            let id = UUID().uuidString.lowercased()
            state.withLock { $0.progress.willPublish(id, at: .now) }
            let message = AMQPMessage(
                exchange: ExchangeName.marks.name, routingKey: stream.rawValue,
                properties: AMQPProperties(messageID: id, type: "heliograph.mark", appID: service), body: [])
            let publishing = await Timeout.result(of: { await self.publish(message) }, within: Self.confirmDeadline)
            if case .some(.none) = publishing { return }
            let problem = publishing.flatMap(\.self) ?? "no confirm within \(Self.confirmDeadline)"
            if lastReported != problem, !Task.isCancelled {
                logger.warning(
                    "Cannot publish a stream mark; apply the topology or check permissions",
                    metadata: [LogKey.stream: "\(stream.rawValue)", LogKey.reason: "\(problem)"])
                lastReported = problem
            }
            // Interrupted only at the end of the reader.
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// Publishes a message; returns the reason if the broker did not confirm it.
    private func publish(_ message: AMQPMessage) async -> String? {
        do {
            let answer = try await publisher.publish([message])
            return answer == [.confirmed] ? nil : "\(answer)"
        } catch {
            return "\(error)"
        }
    }

    private var isAttached: Bool {
        if case .active = subscription.withLock({ $0?.state }) { true } else { false }
    }

    /// Cancels the subscription, so that ``follow()`` attaches again at the beginning of the stream.
    private func reattach() async {
        state.withLock { $0.isReattaching = true }
        await subscription.withLock(\.self)?.cancel()
    }

    private func monitor() async {
        let gauge = Gauge(label: "heliograph_stream_age_seconds", dimensions: [("stream", stream.rawValue)])
        var sinceMark = Duration.zero
        var silence = Duration.zero
        while (try? await Task.sleep(for: Self.checkInterval)) != nil {
            if let age { gauge.record(age / .seconds(1)) }
            sinceMark += Self.checkInterval
            silence = isAttached && state.withLock(\.progress.isResuming) ? silence + Self.checkInterval : .zero
            if silence >= Self.resumeTimeout {
                silence = .zero
                await reattach()
            }
            // Repeated until one is read, because a mark published during an attachment may be missed.
            if sinceMark >= (age == nil ? Self.checkInterval : Self.markInterval) {
                sinceMark = .zero
                request.yield()
            }
        }
    }
}

/// Runs a service after a stream was read to its end; not at all if that never happens.
package struct StartAfterCatchUp<Next: Service>: Service {
    private let reader: StreamReader
    private let next: Next

    package init(_ reader: StreamReader, _ next: Next) {
        self.reader = reader
        self.next = next
    }

    package func run() async throws {
        guard await cancelWhenGracefulShutdown({ await reader.caughtUp() }) else { return }
        try await next.run()
    }
}
