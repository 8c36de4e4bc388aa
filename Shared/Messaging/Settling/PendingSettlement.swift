internal import AMQP
internal import PushProtocol

/// The settlement of one message after its verdict. Pure: takes the broker's answers and returns the next action.
///
/// The order guarantees that nothing is lost: first the outbound messages are confirmed, then the copy for a retry
/// level or dead-letter queue; then the message is acknowledged.
struct PendingSettlement: Sendable {
    enum SettlementAction: Sendable {
        case publish([Outbound])
        /// Publish the copy for a retry level or dead-letter queue.
        case republish(AMQPMessage)
        case acknowledge
        /// Reject, so that the broker dead-letters the message: its copy cannot be published.
        case reject
    }

    let inbound: Inbound
    /// The decoded message; `nil` if it was not decoded.
    let message: (any ErasedDelivery)?
    private(set) var disposition: ResolvedDisposition
    private let routing: RepublishRouting
    private var outbound: [Outbound]
    private var copy: RepublishedCopy
    /// Whether the copy is without the original headers.
    private var hasDroppedHeaders = false
    private var mustReject = false
    /// How many more rounds an unroutable outbound is published; `nil` without limit.
    private var remainingRounds: Int?

    init(
        _ inbound: Inbound, of message: (any ErasedDelivery)? = nil, disposition: ResolvedDisposition,
        outbound: [Outbound] = [],
        remainder: [UInt8]? = nil, routing: RepublishRouting, remainingRounds: Int? = nil
    ) {
        self.inbound = inbound
        self.message = message
        self.disposition = disposition
        self.routing = routing
        self.remainingRounds = remainingRounds
        self.outbound = outbound
        copy = PendingSettlement.copy(of: inbound, for: disposition, remainder: remainder, routing: routing)
    }

    /// The delivery tag of the message.
    var tag: AMQPDeliveryTag { inbound.delivery.tag }

    /// Whether the broker dead-letters the message.
    var isRejected: Bool { mustReject }

    /// The number of messages of the next action.
    var messageCount: Int {
        if mustReject { return 0 }
        if !outbound.isEmpty { return outbound.count }
        return switch copy {
        case .none: 0
        case .due: 1
        }
    }

    var next: SettlementAction {
        if mustReject { return .reject }
        if !outbound.isEmpty { return .publish(outbound) }
        return switch copy {
        case .none: .acknowledge
        case .due(let message): .republish(message)
        }
    }

    /// Records that all messages of the last action were confirmed.
    mutating func confirm() {
        if outbound.isEmpty { copy = .none } else { outbound = [] }
    }

    /// Records the broker's answers to the messages of the last action, in order.
    mutating func record(_ answers: some Collection<AMQPConfirmation>, now: Timestamp = .now) {
        guard !outbound.isEmpty else {
            let answer = answers.first
            switch answer {
            case .confirmed: copy = .none
            case .returned(let code, let text) where answer?.isPermanentRefusal == true:
                recordCopyRefusal(code, text, now: now)
            case .nacked, .returned, nil: break
            }
            return
        }
        let refused = answers.lazy.compactMap { answer -> (code: Int, text: String)? in
            if case .returned(let code, let text) = answer, answer.isPermanentRefusal { (code, text) } else { nil }
        }.first
        if let refused {
            outbound = []
            disposition = .deadLetter(
                Reason(code: ReasonCode.outboundRefused, detail: "cannot be published: \(refused.code) \(refused.text)")
            )
            copy = PendingSettlement.copy(of: inbound, for: disposition, remainder: nil, routing: routing)
        } else {
            let unroutable = zip(outbound, answers).first { $1.isUnroutable }?.0
            outbound = zip(outbound, answers).filter { $1 != .confirmed }.map(\.0)
            if let unroutable { recordUnroutable(unroutable, now: now) }
        }
    }

    /// After the last round, moves the message to a retry level with a delay close to its age, where it is handled
    /// again. Counts no attempt, so the message is never exhausted by this.
    private mutating func recordUnroutable(_ message: Outbound, now: Timestamp) {
        guard let left = remainingRounds else { return }
        remainingRounds = left - 1
        guard left <= 1 else { return }
        let age = now - inbound.firstSeen
        let level = PendingSettlement.unroutableLevels.last { $0.delay <= age } ?? PendingSettlement.unroutableLevels[0]
        let place = "exchange \(message.exchange.name), routing key \(message.routingKey)"
        disposition = .postpone(
            level,
            Reason(
                code: ReasonCode.outboundUnroutable,
                detail: "an outbound message reached no queue (\(place)); run `pushctl topology apply`"))
        outbound = []
        copy = PendingSettlement.copy(of: inbound, for: disposition, remainder: nil, routing: routing)
    }

    /// Records the refusal of the copy. 501 and 502 are about headers, so the next copy has none of the original ones.
    /// After any other refusal the broker dead-letters the message.
    private mutating func recordCopyRefusal(_ code: Int, _ text: String, now: Timestamp) {
        let refusal = "its copy cannot be published: \(code) \(text)"
        let before = disposition.reason.map { "; before that: \($0.code): \($0.detail)" } ?? ""
        guard !hasDroppedHeaders, code != PendingSettlement.preconditionFailed else {
            mustReject = true
            disposition = .deadLetter(Reason(code: ReasonCode.rejected, detail: refusal + before))
            return
        }
        hasDroppedHeaders = true
        let reason: Reason
        if case .deadLetter(let known) = disposition {
            reason = known
        } else {
            reason = Reason(code: ReasonCode.copyRefused, detail: refusal + before)
        }
        disposition = .deadLetter(reason)
        copy = .due(routing.deadLetterCopyWithoutHeaders(inbound.delivery, as: inbound, because: reason, at: now))
    }

    private static let unroutableLevels: [RetryLevel] = [.seconds5, .seconds30, .minutes2, .minutes15]

    private static let preconditionFailed = 406

    private static func copy(
        of inbound: Inbound, for disposition: ResolvedDisposition, remainder: [UInt8]?, routing: RepublishRouting
    ) -> RepublishedCopy {
        let delivery = inbound.delivery
        return switch disposition {
        case .done, .discard: .none
        case .retry(let level, let reason):
            .due(
                routing.retryCopy(
                    delivery, as: inbound, at: level, attempt: inbound.attempt + 1, because: reason, body: remainder))
        case .postpone(let level, let reason):
            .due(
                routing.retryCopy(
                    delivery, as: inbound, at: level, attempt: inbound.attempt, because: reason, body: remainder))
        case .deadLetter(let reason):
            .due(routing.deadLetterCopy(delivery, as: inbound, because: reason, at: .now, body: remainder))
        }
    }

    /// The copy to publish. Indirect, because most settlements have none and values are copied often.
    private indirect enum RepublishedCopy {
        case none
        case due(AMQPMessage)
    }
}

extension AMQPConfirmation {
    /// 312 is about a routing key, so about one app. 404 and 403 are about an exchange and affect all apps, which wait.
    fileprivate var isUnroutable: Bool {
        if case .returned(code: 312, _) = self { true } else { false }
    }
}
