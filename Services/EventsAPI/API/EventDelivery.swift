import DecisionLog
import HTTPAuth
import HTTPTypes
import Hummingbird
import Metrics
import PushProtocol

/// Publishes events, waits for their decisions if asked, and answers.
struct EventDelivery: Sendable {
    /// The `Retry-After` of an event that the broker did not take, in seconds.
    static let retryAfter = 5

    let publisher: EventPublisher
    let waiter: DecisionWaiter

    /// Publishes one event.
    ///
    /// - Parameters:
    ///   - mode: the label of the metric: the ``ContentMode``, or `notification`.
    ///   - wait: how long to wait for the decisions about it; nil for not at all.
    /// - Throws: the reason for which the broker did not take it.
    func answer(_ event: IncomingEvent, _ mode: String, _ wait: Duration?) async throws -> Response {
        let refusal = await publisher.publish([event])[0]
        let receipts = [EventReceipt(event: event, refusal: refusal)]
        count(receipts, of: event.event.app, mode)
        if let refusal { throw refusal }
        return await answer(receipts, wait)
    }

    /// Publishes the readable events of a batch. Each event has its own result.
    func answer(
        _ events: [Result<IncomingEvent, EventRefusal>], of app: AppID, _ wait: Duration?
    ) async -> Response {
        var results = await publisher.publish(events.compactMap { try? $0.get() })[...]
        let receipts = events.map { event in
            switch event {
            case .success(let event): EventReceipt(event: event, refusal: results.removeFirst())
            case .failure(let refusal): EventReceipt(event: nil, refusal: refusal)
            }
        }
        count(receipts, of: app, ContentMode.batch.rawValue)
        return await answer(receipts, wait)
    }

    private func answer(_ receipts: [EventReceipt], _ wait: Duration?) async -> Response {
        let accepted = receipts.filter(\.isAccepted).compactMap(\.event)
        var explanations: [Explanation?]?
        if let wait, !accepted.isEmpty {
            explanations = await waiter.explanations(of: accepted.map(\.event), within: wait)
        }
        return Self.response(receipts, explanations)
    }

    /// - Parameter explanations: the log's entries about the accepted events; nil without a wait.
    private static func response(_ receipts: [EventReceipt], _ explanations: [Explanation?]?) -> Response {
        var entries = (explanations ?? [])[...]
        let events = receipts.enumerated().map { index, receipt in
            var members = receipt.json(index: index) { Response.problemDocument(APIError($0)) }
            if receipt.isAccepted, !entries.isEmpty {
                members.merge(decisions(entries.removeFirst())) { $1 }
            }
            return JSONValue.object(members)
        }
        var body: [String: JSONValue] = ["accepted": .int(Int64(receipts.accepted)), "events": .array(events)]
        if let explanations { body["complete"] = .bool(explanations.allSatisfy { $0?.isComplete == true }) }
        let status = HTTPResponse.Status(code: receipts.status)
        if receipts.status >= 400 {
            let error = APIError(
                EventRefusal(status: receipts.status, message: "no event is accepted; events has the reason of each"))
            return .problem(error, members: body)
        }
        return .json(explanations == nil || receipts.status == 207 ? status : .ok, .object(body))
    }

    private static func decisions(_ entry: Explanation?) -> [String: JSONValue] {
        guard let entry else { return ["decided": false, "notifications": []] }
        let json = entry.json
        return [
            "decided": true, "notifications": json["stories"] ?? [], "fan_outs": json["crowds"] ?? [],
        ]
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_events_api_events_total` | counter | app, mode, result | events: accepted, refused, unavailable |
    private func count(_ receipts: [EventReceipt], of app: AppID, _ mode: String) {
        var results: [String: Int] = [:]
        for receipt in receipts {
            let result = receipt.refusal.map { $0.status == 503 ? "unavailable" : "refused" } ?? "accepted"
            results[result, default: 0] += 1
        }
        for (result, number) in results {
            Counter(
                label: "heliograph_events_api_events_total",
                dimensions: [("app", app.rawValue), ("mode", mode), ("result", result)]
            ).increment(by: number)
        }
    }
}

extension APIError {
    init(_ refusal: EventRefusal) {
        self.init(
            status: refusal.httpStatus, message: refusal.message,
            retryAfter: refusal.status == 503 ? EventDelivery.retryAfter : nil)
    }
}

extension EventRefusal {
    /// The status with its reason phrase, which becomes the problem's title.
    fileprivate var httpStatus: HTTPResponse.Status {
        switch status {
        case 400: .badRequest
        case 403: .forbidden
        case 413: .contentTooLarge
        case 415: .unsupportedMediaType
        case 503: .serviceUnavailable
        default: HTTPResponse.Status(code: status, reasonPhrase: "Refused")
        }
    }
}
