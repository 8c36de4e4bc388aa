import FoundationEssentials
import Messaging
import Providers
import PushProtocol
import Synchronization

/// The spans of the pushes that the current task sends. Adds a span for each request to the provider, with the
/// provider's status and reason, and never with a token.
///
/// A gateway finds it as a task-local value, since a request has no reference to its push.
final class SendTrace: Sendable {
    @TaskLocal static var current: SendTrace?

    /// The most spans of successful requests of a notification. A push of a campaign has up to 500 targets. Failed
    /// requests have no limit.
    static let maximumSuccesses = 20

    private let provider: Provider
    private let environment: ProviderEnvironment
    private let spans: [UUID: MessageSpan]
    private let successes = Mutex<[UUID: Int]>([:])

    /// Returns `nil` if no push of the batch has a span, as without tracing.
    init?(_ batch: RouteBatch) {
        guard let first = batch.pushes.first(where: { $0.span != nil })?.message else { return nil }
        var spans: [UUID: MessageSpan] = [:]
        for push in batch.pushes {
            guard let span = push.span else { continue }
            span.set("heliograph.provider", .text(push.message.provider.rawValue))
            span.set("heliograph.environment", .text(push.message.environment.rawValue))
            span.set("heliograph.targets", .number(push.message.targets.count))
            for target in push.message.targets where spans[target.notification] == nil {
                spans[target.notification] = span
            }
        }
        provider = first.provider
        environment = first.environment
        self.spans = spans
    }

    /// Adds the span of an answered request.
    ///
    /// - Parameter start: when the requests of the attempt were given to the connections. Requests of an attempt end
    ///   together; `heliograph.provider.response_ms` has the time of the single response.
    func record(_ response: ProviderResponse, _ consequence: Consequence, to target: Push.Target, from start: UInt64) {
        guard let span = spans[target.notification] else { return }
        let failure = consequence.failure
        guard failure != nil || span.isSampled && countSuccess(of: target.notification) else { return }
        var attributes = attributes(of: target)
        attributes["http.response.status_code"] = .number(response.status)
        attributes["heliograph.provider.reason"] = failure.map(MessageSpan.Value.text)
        if let elapsed = response.elapsed {
            attributes["heliograph.provider.response_ms"] = .number(Int(elapsed / .milliseconds(1)))
        }
        if case .settle(let answer) = consequence {
            attributes["heliograph.outcome"] = .text(answer.disposition.rawValue)
            if case .accepted(let id?) = answer {
                attributes["heliograph.provider.message_id"] = .text(id.text)
            }
        }
        span.addRequest("push \(provider.rawValue)", from: start, attributes, failure: failure)
    }

    /// Adds the spans of requests without a response. Requests that were not sent have none.
    func recordFailures(_ results: [TransportResult], to target: (Int) -> Push.Target, from start: UInt64) {
        for (index, result) in results.enumerated() {
            guard case .failure(let error) = result, let failure = error.failure else { continue }
            let target = target(index)
            spans[target.notification]?.addRequest(
                "push \(provider.rawValue)", from: start, attributes(of: target), failure: failure)
        }
    }

    /// Sets the numbers of outcomes on the spans of the pushes. A push with a failed target is failed.
    func finish(_ batch: RouteBatch, _ results: PushResults) {
        var counts = [[Outcome.Answer.Disposition: Int]](repeating: [:], count: batch.pushes.count)
        for (outcome, push) in zip(results.finished.outcomes, results.finished.pushIndices) {
            counts[push][outcome.answer.disposition, default: 0] += 1
            if let failure = outcome.answer.failure { batch.pushes[push].span?.fail(failure) }
        }
        for (index, push) in batch.pushes.enumerated() {
            guard let span = push.span else { continue }
            for (disposition, count) in counts[index] {
                span.set("heliograph.targets.\(disposition.rawValue)", .number(count))
            }
            if let remaining = results.remaining(of: index) {
                span.set("heliograph.targets.remaining", .number(remaining.targets.count))
            }
        }
    }

    private func attributes(of target: Push.Target) -> [String: MessageSpan.Value] {
        [
            "http.request.method": "POST", "heliograph.provider": .text(provider.rawValue),
            "heliograph.environment": .text(environment.rawValue),
            "heliograph.notification": .text(Hexadecimal.text(of: target.notification)),
            "heliograph.device": .text(Hexadecimal.text(of: target.device)),
        ]
    }

    private func countSuccess(of notification: UUID) -> Bool {
        successes.withLock { successes in
            let count = successes[notification, default: 0]
            successes[notification] = count + 1
            return count < Self.maximumSuccesses
        }
    }
}

extension Consequence {
    /// The provider's or our reason, without the part after a colon, which may name a member of the payload; `nil` for
    /// an acceptance.
    fileprivate var failure: String? {
        switch self {
        case .settle(let answer): answer.failure
        case .backOff(_, let reason), .throttle(_, let reason), .reauthenticate(let reason), .reconnect(let reason, _),
            .reconnectAndBackOff(_, let reason), .halt(let reason), .waitForThirdParty(let reason):
            reason.word
        }
    }
}

extension Outcome.Answer {
    /// Why the provider refused the target; `nil` for an acceptance, and for a target that was not to be sent.
    fileprivate var failure: String? {
        switch self {
        case .unregistered(_, let reason), .rejected(let reason, _), .throttled(let reason),
            .misconfigured(let reason), .unknown(let reason):
            reason.word
        case .accepted, .expired, .skipped: nil
        }
    }
}

extension TransportError {
    /// `nil` for a request that was not sent for a reason of ours.
    fileprivate var failure: String? {
        switch self {
        case .unreachable(let reason), .notProcessed(let reason), .ambiguous(let reason): reason.word
        case .timedOut: "timed-out"
        case .deferred, .withdrawn, .withheld, .outdated: nil
        }
    }
}

extension String {
    fileprivate var word: String { String(prefix { $0 != ":" }) }
}
