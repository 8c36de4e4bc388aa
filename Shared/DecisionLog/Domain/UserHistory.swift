package import FoundationEssentials
package import PushProtocol

/// A user's last notifications and those that wait, for the screens of operators.
package struct UserHistory: Hashable, Sendable {
    /// A notification with its last decision.
    package struct Row: Hashable, Sendable {
        /// How often an origin reported a disposition, over the user's devices.
        package struct Result: Hashable, Sendable {
            package var origin: String
            package var disposition: String
            package var reason: String?
            package var count: Int
        }

        package var notification: UUID
        package var event: String
        package var type: String
        package var rule: String
        package var decidedAt: Date
        package var answer: String
        package var reason: String
        package var until: Date?
        package var results: [Result] = []
    }

    /// A notification that rules releases or publishes later.
    package struct Waiting: Hashable, Sendable {
        package var notification: UUID
        package var event: String
        package var rule: String
        /// `held`, `scheduled` or `summary` of a digest.
        package var kind: String
        package var dueAt: Date
    }

    /// Latest first.
    package var rows: [Row]
    /// Next due first.
    package var waiting: [Waiting]
}

extension UserHistory {
    /// The response of the operator API; the `openapi.yaml` of rules documents its members.
    package var json: JSONValue {
        [
            "notifications": .array(rows.map(\.json)), "waiting": .array(waiting.map(\.json)),
            "reasons": Explanation.meanings(
                of: Set(rows.map(\.reason) + rows.flatMap { $0.results.compactMap(\.reason) })),
        ]
    }
}

extension UserHistory.Row {
    fileprivate var json: JSONValue {
        [
            "notification": .string(notification.uuidString.lowercased()), "event": .string(event),
            "type": .string(type), "rule": .string(rule), "decided_at": .string(RFC3339.string(from: decidedAt)),
            "answer": .string(answer), "reason": .string(reason), "until": .optional(until.map(RFC3339.string(from:))),
            "results": .array(results.map(\.json)),
        ]
    }
}

extension UserHistory.Row.Result {
    fileprivate var json: JSONValue {
        [
            "origin": .string(origin), "disposition": .string(disposition), "reason": .optional(reason),
            "count": .int(Int64(count)),
        ]
    }
}

extension UserHistory.Waiting {
    fileprivate var json: JSONValue {
        [
            "notification": .string(notification.uuidString.lowercased()), "event": .string(event),
            "rule": .string(rule), "kind": .string(kind), "due_at": .string(RFC3339.string(from: dueAt)),
        ]
    }
}
