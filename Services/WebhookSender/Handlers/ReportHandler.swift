import FoundationEssentials
import Messaging
import PushProtocol
import ServiceKit

/// Sends each report to the webhook of its queue.
struct ReportHandler: StageHandler {
    /// A report: its kind, and its id for the header `webhook-id`. The body is sent as it came.
    struct Report: Sendable {
        let kind: ReportKind
        let id: UUID
    }

    /// The reasons of dead letters and discarded reports.
    enum ReasonCode {
        /// Not delivered within `WEBHOOK_FAILURE_TIME`.
        static let failed = "webhook-failed"
        /// The receiver answered 410.
        static let gone = "webhook-gone"
        /// The webhook is disabled; the report was not sent.
        static let disabled = "webhook-disabled"
        /// The URL or its addresses are not allowed.
        static let refused = "webhook-refused"
        static let unavailable = "webhook-unavailable"
        static let rejected = "webhook-rejected"
        static let unwanted = "webhook-unwanted"
    }

    let endpoints: Endpoints
    let failureTime: Duration
    let now: @Sendable () -> Timestamp

    func decode(_ inbound: Inbound) throws(WireError) -> Report {
        let (kind, id) = try ReportEvent.read(inbound.body)
        guard let app = inbound.queue.app, inbound.exchange == kind.exchange.name,
            inbound.routingKey == kind.routingKey(of: app)
        else { throw .misrouted("names another app or kind of report than the body") }
        return Report(kind: kind, id: id)
    }

    func handle(_ batch: [Delivery<Report>]) async throws -> [Verdict] {
        var verdicts: [Verdict] = []
        for delivery in batch {
            verdicts.append(Verdict(await disposition(of: delivery.message, delivery.inbound)))
        }
        return verdicts
    }

    private func disposition(of report: Report, _ inbound: Inbound) async -> Disposition {
        guard let endpoint = endpoints[inbound.queue], endpoint.configuration.kinds.contains(report.kind) else {
            return .discard(
                Reason(code: ReasonCode.unwanted, detail: "the webhook does not ask for \(report.kind.rawValue)"))
        }
        let isOld = now() - inbound.firstSeen >= failureTime
        switch endpoint.permission(at: now()) {
        case .send: break
        case .wait(let pause):
            guard !isOld else {
                return .deadLetter(Reason(code: ReasonCode.failed, detail: "the webhook was unavailable for too long"))
            }
            return .postpone(
                after: pause, Reason(code: ReasonCode.unavailable, detail: "the webhook is paused after a failure"))
        case .refuse(let reason):
            return .deadLetter(Reason(code: ReasonCode.disabled, detail: "the webhook is disabled: \(reason)"))
        }
        let result = await endpoint.send(id: report.id, body: inbound.body, at: now())
        let end = now()
        let isLast = end - inbound.firstSeen >= failureTime
        endpoint.record(result, firstSeen: inbound.firstSeen, isLast: isLast, at: end)
        return Self.disposition(after: result, attempt: inbound.attempt, isLast: isLast)
    }

    /// The consequence of one request for its report.
    static func disposition(after result: RequestResult, attempt: Int, isLast: Bool) -> Disposition {
        let delay = RetryLevel(afterAttempt: attempt).delay
        switch result {
        case .delivered: return .done
        case .gone: return .deadLetter(Reason(code: ReasonCode.gone, detail: "the receiver answered 410"))
        case .refused(let reason): return .deadLetter(Reason(code: ReasonCode.refused, detail: reason))
        case .unavailable(let reason, _) where isLast, .rejected(let reason) where isLast:
            return .deadLetter(
                Reason(code: ReasonCode.failed, detail: "not delivered after \(attempt) attempts; last: \(reason)"))
        case .unavailable(let reason, let retryAfter):
            return .retry(
                after: max(delay, retryAfter ?? .zero), Reason(code: ReasonCode.unavailable, detail: reason))
        case .rejected(let reason): return .retry(after: delay, Reason(code: ReasonCode.rejected, detail: reason))
        }
    }
}
