package import FoundationEssentials
package import PushProtocol

/// A decision or an outcome, as `pushctl tail` prints it.
package struct TailRow: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// A decision of rules: its number for this notification, its answer and the end of a hold.
        case decision(step: Int, answer: String, until: Date?)
        /// The result for one device, or for a user without one.
        case outcome(origin: String, device: UUID?, disposition: String)
    }

    /// The time of the decision, or of the provider's answer.
    package var at: Date
    package var app: String
    package var user: String
    /// The event's id from the upstream service.
    package var event: String
    package var type: String
    package var rule: String
    package var notification: UUID
    package var reason: String?
    package var kind: Kind
}

extension TailRow {
    /// The document of `pushctl tail --json`: one for each row. Members that the kind does not have are absent.
    package var json: JSONValue {
        var members: [String: JSONValue] = [
            "at": .string(RFC3339.string(from: at)), "app": .string(app), "user": .string(user),
            "event": .string(event), "type": .string(type), "rule": .string(rule),
            "notification": .string(notification.uuidString.lowercased()), "reason": .optional(reason),
        ]
        switch kind {
        case .decision(let step, let answer, let until):
            members["kind"] = "decision"
            members["step"] = .int(Int64(step))
            members["answer"] = .string(answer)
            members["until"] = .optional(until.map(RFC3339.string(from:)))
        case .outcome(let origin, let device, let disposition):
            members["kind"] = "outcome"
            members["origin"] = .string(origin)
            members["device"] = .optional(device?.uuidString.lowercased())
            members["disposition"] = .string(disposition)
        }
        return .object(members)
    }
}
