import AMQP
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import ServiceKit
import Synchronization

/// Publishes events as persistent and mandatory messages, and waits for the broker's confirms.
final class EventPublisher: Sendable {
    /// The least time between two log lines with the same problem.
    static let quietTime = Duration.seconds(60)
    /// The number of messages that are published together.
    static let chunk = 500

    /// The service's name, for the AMQP property `app-id`.
    let service: String
    /// The time until an unconfirmed event is reported as such.
    let deadline: Duration
    /// Publishes messages and returns the broker's answers in the same order (``AMQPPublisher/publish(_:)``).
    let send: @Sendable ([AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation]
    /// `nil` without tracing.
    private let tracing: PublishTracing?
    private let logger: Logger
    /// The time of the last log line of each problem.
    private let logged = Mutex<[Problem: ContinuousClock.Instant]>([:])

    /// The reasons for which events are not accepted now.
    private enum Problem: String {
        case failed = "the publish failed"
        case late = "the broker did not confirm in time"
        case nacked = "a queue is full"
        case unrouted = "no queue takes the event; run pushctl topology apply"
        case tooLarge = "the broker's max_message_size is too small"
    }

    init(
        service: String, deadline: Duration, tracing: PublishTracing? = nil, logger: Logger,
        send: @escaping @Sendable ([AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation]
    ) {
        self.service = service
        self.deadline = deadline
        self.tracing = tracing
        self.logger = logger
        self.send = send
    }

    /// Publishes events in order.
    ///
    /// After the deadline, unsent events are not published. An event that was sent without a confirm may have been
    /// published; the same source and id make a repeat the same event.
    ///
    /// - Returns: for each event nil after its confirm, or the reason for which it is not accepted.
    func publish(_ events: [IncomingEvent]) async -> [EventRefusal?] {
        let end = ContinuousClock.now + deadline
        var results: [EventRefusal?] = []
        results.reserveCapacity(events.count)
        while results.count < events.count {
            let chunk = events[results.count...].prefix(Self.chunk)
            var messages = chunk.map(message)
            let spans = tracing.map { traced(&messages, of: chunk, by: $0) } ?? []
            let answers = await confirmations(of: messages, from: chunk.first?.event, until: end)
            for (index, span) in spans.enumerated() { Self.end(span, answers?[index]) }
            guard let confirmations = answers else { break }
            for (incoming, confirmation) in zip(chunk, confirmations) {
                results.append(Self.refusal(confirmation))
                if let problem = Self.problem(confirmation) {
                    note(problem, "\(confirmation)", incoming.event)
                } else {
                    logger.debug("Event accepted", metadata: incoming.event.logMetadata)
                }
            }
        }
        return results + Array(repeating: .unconfirmed, count: events.count - results.count)
    }

    /// Starts the span of each message, and writes its context into the headers.
    private func traced(
        _ messages: inout [AMQPMessage], of events: ArraySlice<IncomingEvent>, by tracing: PublishTracing
    ) -> [MessageSpan] {
        zip(messages.indices, events).map { index, incoming in
            let span = tracing.span(of: &messages[index], parent: incoming.event.traceparent ?? incoming.traceparent)
            span.describe(incoming.event)
            return span
        }
    }

    private static func end(_ span: MessageSpan, _ confirmation: AMQPConfirmation?) {
        switch confirmation {
        case .confirmed: break
        case .nacked: span.fail("nacked")
        case .returned: span.fail("returned")
        case nil: span.fail("unconfirmed")
        }
        span.end()
    }

    /// - Parameter event: that of the first message.
    private func confirmations(
        of messages: [AMQPMessage], from event: DomainEvent?, until end: ContinuousClock.Instant
    ) async -> [AMQPConfirmation]? {
        let send = send
        return await withTaskGroup(of: Result<[AMQPConfirmation], AMQPError>?.self) { group in
            group.addTask {
                do throws(AMQPError) { return .success(try await send(messages)) } catch { return .failure(error) }
            }
            group.addTask {
                try? await Task.sleep(until: end, clock: .continuous)
                return nil
            }
            let first = await group.next() ?? nil
            // Cancels the publish: messages that were not sent stay unsent.
            group.cancelAll()
            switch first {
            case .success(let confirmations): return confirmations
            case .failure(let error): note(.failed, "\(error)", event)
            case nil: note(.late, "no confirm within \(deadline)", event)
            }
            return nil
        }
    }

    /// Logs a problem with the first event that has it, at most once in ``quietTime``. Publishers can cause it in any
    /// number.
    private func note(_ problem: Problem, _ detail: String, _ event: DomainEvent?) {
        let now = ContinuousClock.now
        let isDue = logged.withLock { logged in
            if let last = logged[problem], now - last < Self.quietTime { return false }
            logged[problem] = now
            return true
        }
        guard isDue else { return }
        logger.warning(
            "Events are not accepted, publishers get an error; further ones with this reason are only counted for a minute",
            metadata: (event?.logMetadata ?? [:]).merging([
                LogKey.reason: "\(problem.rawValue)", LogKey.error: "\(detail)",
            ]) { $1 })
    }

    private static func problem(_ confirmation: AMQPConfirmation) -> Problem? {
        switch confirmation {
        case .confirmed: nil
        case .returned where confirmation.isPermanentRefusal: .tooLarge
        case .nacked: .nacked
        case .returned: .unrouted
        }
    }

    /// The message id differs for each request: a publisher keeps messages with one id in order, by waiting for the
    /// confirm of the earlier one.
    private func message(_ incoming: IncomingEvent) -> AMQPMessage {
        let now = Timestamp.now
        var headers: [String: AMQPValue] = [HeaderName.arrived: .int(now.milliseconds)]
        headers[HeaderName.traceparent] = incoming.traceparent.map(AMQPValue.text)
        return AMQPMessage(
            exchange: ExchangeName.events.name, routingKey: incoming.routingKey,
            properties: AMQPProperties(
                contentType: CloudEvents.structuredContentType, messageID: UUID().uuidString.lowercased(),
                type: incoming.event.type, appID: service, persistent: true, timestamp: now.seconds,
                headers: headers),
            body: incoming.body)
    }

    private static func refusal(_ confirmation: AMQPConfirmation) -> EventRefusal? {
        switch confirmation {
        case .confirmed: nil
        case .returned where confirmation.isPermanentRefusal:
            .tooLarge("the broker refuses the event, because it is larger than its max_message_size")
        case .nacked: .unavailable("the broker refused the event, because a queue is full; send it again later")
        case .returned:
            .unavailable("no queue takes the event: an operator runs pushctl topology apply; send it again later")
        }
    }
}

extension EventRefusal {
    fileprivate static let unconfirmed = EventRefusal.unavailable(
        "the broker did not confirm the event in time, it may be published: send it again with the same source and id"
    )
}
