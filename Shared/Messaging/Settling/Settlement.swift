internal import AMQP
internal import PushProtocol

/// One message on its way from a verdict to being settled. Pure: told what the broker said, it says what comes next.
///
/// The order is the guarantee: what the handler wants published is confirmed first, then the copy to a retry level or
/// dead-letter queue, if any; only then is the message acknowledged.
struct Settlement: Sendable {
    enum Step: Sendable {
        /// What the handler wants published.
        case publish([Outbound])
        /// The message itself, on to where it goes next.
        case move(AMQPMessage)
        case acknowledge
        /// Not even its own copy can be published: the broker moves the message to its dead-letter queue as it is.
        case reject
    }

    let inbound: Inbound
    private(set) var conclusion: Conclusion
    private let redirection: Redirection
    private var outbound: [Outbound]
    private var copy: Copy
    /// Whether the copy is one without the headers that the message came with.
    private var isBare = false
    private var cannotBeCopied = false
    /// How many more rounds without a way for its outbound the message may stay; `nil` for as long as it takes.
    private var patience: Int?

    init(
        _ inbound: Inbound, conclusion: Conclusion, outbound: [Outbound] = [],
        remainder: [UInt8]? = nil, redirection: Redirection, patience: Int? = nil
    ) {
        self.inbound = inbound
        self.conclusion = conclusion
        self.redirection = redirection
        self.patience = patience
        self.outbound = outbound
        copy = Settlement.copy(of: inbound, for: conclusion, remainder: remainder, redirection: redirection)
    }

    /// What names it to the broker.
    var tag: AMQPDeliveryTag { inbound.delivery.tag }

    /// Whether only the broker can move it.
    var isRejected: Bool { cannotBeCopied }

    /// How many messages its next step publishes.
    var wanted: Int {
        if cannotBeCopied { return 0 }
        if !outbound.isEmpty { return outbound.count }
        return switch copy {
        case .none: 0
        case .due: 1
        }
    }

    var next: Step {
        if cannotBeCopied { return .reject }
        if !outbound.isEmpty { return .publish(outbound) }
        return switch copy {
        case .none: .acknowledge
        case .due(let message): .move(message)
        }
    }

    /// The broker has taken all messages of the last step.
    mutating func confirm() {
        if outbound.isEmpty { copy = .none } else { outbound = [] }
    }

    /// Takes the broker's answers to the messages of the last step, in their order.
    mutating func record(_ answers: some Collection<AMQPConfirmation>, now: Timestamp = .now) {
        guard !outbound.isEmpty else {
            let answer = answers.first
            switch answer {
            case .confirmed: copy = .none
            case .returned(let code, let text) where answer?.isPermanentRefusal == true:
                copyWasRefused(code, text, now: now)
            case .nacked, .returned, nil: break
            }
            return
        }
        let refused = answers.lazy.compactMap { answer -> (code: Int, text: String)? in
            if case .returned(let code, let text) = answer, answer.isPermanentRefusal { (code, text) } else { nil }
        }.first
        if let refused {
            outbound = []
            conclusion = .deadLetter(
                Reason(code: ReasonCode.outboundRefused, detail: "cannot be published: \(refused.code) \(refused.text)")
            )
            copy = Settlement.copy(of: inbound, for: conclusion, remainder: nil, redirection: redirection)
        } else {
            let unroutable = zip(outbound, answers).first { $1.isUnroutable }?.0
            outbound = zip(outbound, answers).filter { $1 != .confirmed }.map(\.0)
            if let unroutable { lostItsWay(unroutable, now: now) }
        }
    }

    /// Steps aside once patience is at its end: the message waits in a retry level, about as long as it is old, and
    /// all of it is handled again. No attempt is counted, so that it is never given up on for this.
    private mutating func lostItsWay(_ message: Outbound, now: Timestamp) {
        guard let left = patience else { return }
        patience = left - 1
        guard left <= 1 else { return }
        let age = now - inbound.firstSeen
        let level = Settlement.detours.last { $0.delay <= age } ?? Settlement.detours[0]
        let place = "exchange \(message.exchange.name), routing key \(message.routingKey)"
        conclusion = .postpone(
            level,
            Reason(
                code: ReasonCode.outboundUnroutable,
                detail: "no queue takes what it led to (\(place)); run `pushctl topology apply`"))
        outbound = []
        copy = Settlement.copy(of: inbound, for: conclusion, remainder: nil, redirection: redirection)
    }

    /// Takes the refusal of the message's own copy. 501 and 502 are about its headers, so the next copy goes without them.
    /// After any other refusal only the broker can move the message.
    private mutating func copyWasRefused(_ code: Int, _ text: String, now: Timestamp) {
        let refusal = "its copy cannot be published: \(code) \(text)"
        let before = conclusion.reason.map { "; before that: \($0.code): \($0.detail)" } ?? ""
        guard !isBare, code != Settlement.preconditionFailed else {
            cannotBeCopied = true
            conclusion = .deadLetter(Reason(code: ReasonCode.rejected, detail: refusal + before))
            return
        }
        isBare = true
        let reason: Reason
        if case .deadLetter(let known) = conclusion {
            reason = known
        } else {
            reason = Reason(code: ReasonCode.copyRefused, detail: refusal + before)
        }
        conclusion = .deadLetter(reason)
        copy = .due(redirection.bareDeadLetter(inbound.delivery, as: inbound, because: reason, at: now))
    }

    private static let detours: [RetryLevel] = [.seconds5, .seconds30, .minutes2, .minutes15]

    private static let preconditionFailed = 406

    private static func copy(
        of inbound: Inbound, for conclusion: Conclusion, remainder: [UInt8]?, redirection: Redirection
    ) -> Copy {
        let delivery = inbound.delivery
        return switch conclusion {
        case .done, .discard: .none
        case .retry(let level, let reason):
            .due(
                redirection.again(
                    delivery, as: inbound, at: level, attempt: inbound.attempt + 1, because: reason, body: remainder))
        case .postpone(let level, let reason):
            .due(
                redirection.again(
                    delivery, as: inbound, at: level, attempt: inbound.attempt, because: reason, body: remainder))
        case .deadLetter(let reason):
            .due(redirection.deadLetter(delivery, as: inbound, because: reason, at: .now, body: remainder))
        }
    }

    /// The message itself, as it is published to where it goes next. Indirect, since most settlements have none, and
    /// they are handed about.
    private indirect enum Copy {
        case none
        case due(AMQPMessage)
    }
}

extension AMQPConfirmation {
    /// 312 is about the routing key, so about one app. A missing exchange (404) or right (403) is everyone's trouble,
    /// for which everyone waits.
    fileprivate var isUnroutable: Bool {
        if case .returned(code: 312, _) = self { true } else { false }
    }
}
