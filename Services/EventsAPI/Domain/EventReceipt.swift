import PushProtocol

/// The result of one event of a request. Holds no body, so that a waiting request needs little memory.
struct EventReceipt: Hashable, Sendable {
    struct Identity: Hashable, Sendable {
        var app: AppID
        var source: String
        var id: String
        var type: String

        init(_ event: DomainEvent) {
            app = event.app
            source = event.source
            id = event.id
            type = event.type
        }
    }

    /// The event; nil if it could not be read.
    var event: Identity?
    /// The reason for which it is not accepted; nil after the broker's confirm.
    var refusal: EventRefusal?

    var isAccepted: Bool { refusal == nil }

    /// - Parameters:
    ///   - index: the event's position in its batch, from 0.
    ///   - problem: the refusal as a problem document (RFC 9457).
    func json(index: Int, problem: (EventRefusal) -> JSONValue) -> [String: JSONValue] {
        var members: [String: JSONValue] = [
            "index": .int(Int64(index)), "status": .string(isAccepted ? "accepted" : "refused"),
        ]
        if let event {
            members["source"] = .string(event.source)
            members["id"] = .string(event.id)
            members["type"] = .string(event.type)
        }
        if let refusal { members["problem"] = problem(refusal) }
        return members
    }
}

extension [EventReceipt] {
    var accepted: Int { count { $0.isAccepted } }

    /// The status of an answer without a wait: 202 if all events are accepted, 207 if some are. Without an accepted
    /// event: 503 if one may be accepted later, otherwise the common status of all, or 400.
    var status: Int {
        if allSatisfy(\.isAccepted) { return 202 }
        if contains(where: \.isAccepted) { return 207 }
        let statuses = Set(compactMap(\.refusal?.status))
        if statuses.contains(503) { return 503 }
        return statuses.count == 1 ? statuses.first ?? 400 : 400
    }
}
