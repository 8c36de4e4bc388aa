package import AMQP
internal import FoundationEssentials
package import Logging
internal import Metrics
package import PushProtocol
package import ServiceLifecycle
internal import Synchronization

/// Reads a stream from the oldest message that the broker keeps to its end, and then follows it, through reconnects too. An
/// interruption costs no message, since reading resumes by number and asks no clock. A message that comes twice is applied
/// twice.
///
/// Where the end is, it finds out by marks (``StreamName``). It publishes one whenever it is attached, every few seconds
/// until it has read one, and every few minutes from then on, so a stream that does not deliver any more is found out as
/// well.
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_stream_read_total` | counter | stream | messages read, without marks |
/// | `heliograph_stream_age_seconds` | gauge | stream | how old what is known of the stream is; some minutes are usual |
package final class StreamReader: Service, Sendable {
    /// Between two marks of a stream that is followed.
    static let pace = Duration.seconds(240)
    /// How old what is known may be before it is told.
    static let tolerance = Duration.seconds(600)
    private static let prefetch: UInt16 = 2000
    private static let tick = Duration.seconds(5)
    /// How long a resumed stream may deliver nothing. A stream that is the same one delivers its last message at once.
    /// In a stream that was declared anew the broker waits until the numbers of before are reached.
    private static let patience = Duration.seconds(10)
    /// How long a mark's confirm may take. The broker may never confirm a mark that it takes while the stream is deleted.
    private static let confirmDeadline = Duration.seconds(10)

    package enum Condition: Hashable, Sendable {
        /// Not yet at its end for the first time; why, where that is known.
        case reading(String?)
        case following
        /// It was read once, and what came since is not known.
        case interrupted(String)
    }

    private struct State {
        var progress = StreamProgress()
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isOver = false
        /// Whether the subscription was cancelled to attach once more.
        var isReattaching = false
    }

    private let stream: StreamName
    private let service: String
    private let consumer: AMQPConsumer
    private let publisher: AMQPPublisher
    private let logger: Logger
    private let apply: @Sendable ([[UInt8]]) -> Void
    private let onGap: @Sendable () -> Void
    private let state = Mutex(State())
    private let subscription: Mutex<AMQPSubscription?> = .init(nil)
    /// Each asks for a mark.
    private let requests: AsyncStream<Void>
    private let request: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - consumer: of its own: what becomes of its connection must not disturb anybody else.
    ///   - apply: is given the bodies of what was read, in order, on the reader's task.
    ///   - onGap: is called where messages may be missing, before the first message after them is applied.
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

    /// Runs until graceful shutdown, or until its consumer ends.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.markOnRequest() }
                group.addTask { await self.keepWatch() }
                await self.follow()
                group.cancelAll()
            }
        }
        state.withLock { $0.isOver = true }
        wakeAll()
    }

    /// Reads until the consumer or the task ends. A stream that was deleted and declared anew is read from its beginning.
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
                "a stream was declared anew; reading it from its beginning", metadata: ["stream": "\(stream.rawValue)"])
        }
    }

    /// Waits until the stream was read to its end.
    ///
    /// - Returns: whether it was; no when the reader has ended before, or the task is cancelled.
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

    /// Whoever waits looks again.
    private func wakeAll() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    package var condition: Condition {
        let trouble: String? =
            switch subscription.withLock({ $0?.state }) {
            case .waiting(_, let error): error.map { "\(stream.rawValue) cannot be read: \($0)" }
            case .cancelled: "\(stream.rawValue) is read no more"
            case .active, nil: nil
            }
        guard let age else { return .reading(trouble) }
        if let trouble { return .interrupted(trouble) }
        return age > Self.tolerance
            ? .interrupted("\(stream.rawValue) was last read to its end \(age) ago") : .following
    }

    /// How old what is known is; `nil` before the end was reached.
    private var age: Duration? { state.withLock { $0.progress.readUntil }.map { .now - $0 } }

    /// - Returns: whether these are messages of the stream that was read so far.
    private func take(_ burst: [AMQPDelivery]) -> Bool {
        let isSame = state.withLock { state in
            burst.allSatisfy { delivery in
                guard let offset = delivery.streamOffset else { return true }
                return state.progress.reads(.init(offset: offset, id: delivery.properties.messageID))
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
            } else if !stream.takes(exchange: delivery.exchange, routingKey: delivery.routingKey) {
                logger.warning(
                    "A message in a stream has a routing key of other messages; it is ignored",
                    metadata: ["stream": "\(stream.rawValue)", LogKey.routingKey: "\(delivery.routingKey)"])
            } else if delivery.omittedBytes == 0 {
                rest.append(delivery.body)
            } else {
                logger.warning(
                    "A message in a stream is too large; it is ignored",
                    metadata: ["stream": "\(stream.rawValue)", LogKey.routingKey: "\(delivery.routingKey)"])
            }
        }
        // Before the marks count: they stand for all that came ahead of them.
        if !rest.isEmpty {
            apply(rest)
            Counter(label: "heliograph_stream_read_total", dimensions: [("stream", stream.rawValue)])
                .increment(by: rest.count)
        }
        consumer.acknowledge(burst.map(\.tag))
        guard !marks.isEmpty else { return true }
        let isFirst = state.withLock { state in marks.reduce(false) { state.progress.reads($1) || $0 } }
        guard isFirst else { return true }
        wakeAll()
        logger.info("a stream was read to its end", metadata: ["stream": "\(stream.rawValue)"])
        return true
    }

    private func markOnRequest() async {
        for await _ in requests { await mark() }
    }

    /// Publishes a mark, for as long as it takes.
    private func mark() async {
        var told: String?
        let id = UUID().uuidString.lowercased()
        state.withLock { $0.progress.publishes(id, at: .now) }
        let message = AMQPMessage(
            exchange: ExchangeName.marks.name, routingKey: stream.rawValue,
            properties: AMQPProperties(messageID: id, type: "heliograph.mark", appID: service), body: [])
        while !Task.isCancelled {
            let publishing = await FirstAnswer.of({ await self.publish(message) }, within: Self.confirmDeadline)
            if case .some(.none) = publishing { return }
            let trouble = publishing.flatMap(\.self) ?? "no confirm within \(Self.confirmDeadline)"
            if told != trouble, !Task.isCancelled {
                logger.warning(
                    "a stream's end cannot be found: apply the topology, or check the permissions",
                    metadata: ["stream": "\(stream.rawValue)", LogKey.reason: "\(trouble)"])
                told = trouble
            }
            // Cut short by the end of the reader only.
            try? await Task.sleep(for: .seconds(1))
        }
    }

    /// Why the broker did not take `message`; `nil` once it has.
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

    /// Ends the subscription, so that ``follow()`` attaches once more, at the beginning of the stream.
    private func reattach() async {
        state.withLock { $0.isReattaching = true }
        await subscription.withLock(\.self)?.cancel()
    }

    private func keepWatch() async {
        let gauge = Gauge(label: "heliograph_stream_age_seconds", dimensions: [("stream", stream.rawValue)])
        var sinceMark = Duration.zero
        var silence = Duration.zero
        while (try? await Task.sleep(for: Self.tick)) != nil {
            if let age { gauge.record(age / .seconds(1)) }
            sinceMark += Self.tick
            silence = isAttached && state.withLock(\.progress.isResuming) ? silence + Self.tick : .zero
            if silence >= Self.patience {
                silence = .zero
                await reattach()
            }
            // A mark that is published while the reader attaches may be passed over, and somebody waits for the end.
            if sinceMark >= (age == nil ? Self.tick : Self.pace) {
                sinceMark = .zero
                request.yield()
            }
        }
    }
}

/// A service that begins once a stream was read to its end, and does not when that is never.
package struct AfterReading<Next: Service>: Service {
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
