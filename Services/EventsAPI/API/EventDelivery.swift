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

    /// Publishes the readable events of a request. Each event has its own result.
    ///
    /// - Parameter mode: the label of the metric.
    func publish(
        _ events: [Result<IncomingEvent, EventRefusal>], of app: AppID, _ mode: String
    ) async -> [EventReceipt] {
        var results = await publisher.publish(events.compactMap { try? $0.get() })[...]
        let receipts = events.map { event in
            switch event {
            case .success(let event):
                EventReceipt(event: EventReceipt.Identity(event.event), refusal: results.removeFirst())
            case .failure(let refusal): EventReceipt(event: nil, refusal: refusal)
            }
        }
        var counts: [String: Int] = [:]
        for receipt in receipts { counts[receipt.result, default: 0] += 1 }
        Self.count(counts, of: app, mode)
        return receipts
    }

    /// Answers a request whose events are published.
    ///
    /// - Parameters:
    ///   - isBatch: whether each event has a result; otherwise a refused event is the answer.
    ///   - wait: how long to wait for the decisions; nil for not at all.
    ///   - showsReactions: whether the caller may know what users read and opened.
    /// - Throws: the reason for which the only event is not accepted.
    func answer(
        _ receipts: [EventReceipt], isBatch: Bool, _ wait: Duration?, showsReactions: Bool
    ) async throws -> Response {
        if !isBatch, let refusal = receipts.first?.refusal { throw refusal }
        let accepted = receipts.filter(\.isAccepted).compactMap(\.event)
        var knowledge: DecisionWaiter.Knowledge?
        if let wait, !accepted.isEmpty { knowledge = await waiter.knowledge(of: accepted, within: wait) }
        return Self.response(receipts, knowledge, showsReactions: showsReactions)
    }

    /// - Parameter knowledge: the log's entries about the accepted events; nil without a wait.
    private static func response(
        _ receipts: [EventReceipt], _ knowledge: DecisionWaiter.Knowledge?, showsReactions: Bool
    ) -> Response {
        var entries = (knowledge?.explanations ?? [])[...]
        let events = receipts.enumerated().map { index, receipt in
            var members = receipt.json(index: index) { Response.problemDocument(APIError($0)) }
            if receipt.isAccepted, !entries.isEmpty {
                members.merge(decisions(entries.removeFirst(), showsReactions: showsReactions)) { $1 }
            }
            return JSONValue.object(members)
        }
        var body: [String: JSONValue] = ["accepted": .int(Int64(receipts.accepted)), "events": .array(events)]
        if let knowledge { body.merge(knowledge.json) { $1 } }
        let status = HTTPResponse.Status(code: receipts.status)
        if receipts.status >= 400 {
            let error = APIError(
                EventRefusal(status: receipts.status, message: "no event is accepted; events has the reason of each"))
            return .problem(error, members: body)
        }
        return .json(knowledge == nil || receipts.status == 207 ? status : .ok, .object(body))
    }

    private static func decisions(_ entry: Explanation?, showsReactions: Bool) -> [String: JSONValue] {
        guard let entry else { return ["decided": false, "notifications": []] }
        let json = entry.json
        let notifications = (json["stories"]?.array ?? []).map { notification in
            guard !showsReactions, case .object(var members) = notification else { return notification }
            members["inbox"] = nil
            members["receipts"] = nil
            return JSONValue.object(members)
        }
        return ["decided": true, "notifications": .array(notifications), "fan_outs": json["crowds"] ?? []]
    }

    /// A body that cannot be read counts as one event.
    static func count(_ results: [String: Int], of app: AppID, _ mode: String) {
        for (result, number) in results {
            Counter(
                label: "heliograph_events_api_events_total",
                dimensions: [("app", app.rawValue), ("mode", mode), ("result", result)]
            ).increment(by: number)
        }
    }
}

extension EventReceipt {
    /// The label of the metric.
    fileprivate var result: String { refusal.map { $0.status == 503 ? "unavailable" : "refused" } ?? "accepted" }
}

extension DecisionWaiter.Knowledge {
    /// `complete`, and `incomplete` with the reason.
    var json: [String: JSONValue] {
        var members: [String: JSONValue] = ["complete": .bool(lack == nil)]
        if let lack { members["incomplete"] = .string(lack.rawValue) }
        return members
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
