package import PushProtocol
import FoundationEssentials

/// The JSON of the operator API; the `openapi.yaml` of rules documents its members.
extension Explanation {
    package var json: JSONValue {
        [
            "app": .string(app), "source": .string(source), "id": .string(id), "type": .string(type),
            "arrived_at": Self.moment(arrivedAt), "rule_set": Self.uuid(ruleSet),
            "crowds": .array(fanOuts.map(\.json)), "stories": .array(traces.map(\.json)),
            "revocations": .array(revocations.map(\.json)), "clears": .array(clears.map(\.json)),
            "next": .optional(next?.uuidString.lowercased()),
        ]
    }

    package static func meanings(of reasons: Set<String>) -> JSONValue {
        let used = meanings.filter { reasons.contains($0.key) }.map { ($0.key, JSONValue.string($0.value)) }
        return .object(Dictionary(used) { first, _ in first })
    }

    fileprivate static func moment(_ date: Date) -> JSONValue { .string(RFC3339.string(from: date)) }

    fileprivate static func uuid(_ id: UUID) -> JSONValue { .string(id.uuidString.lowercased()) }
}

extension Explanation.FanOut {
    fileprivate var json: JSONValue {
        [
            "rule": .string(rule), "decided": .int(Int64(decided)),
            "left_at_most": leftAtMost.map { .int(Int64($0)) } ?? .null,
        ]
    }
}

extension Explanation.NotificationTrace {
    fileprivate var json: JSONValue {
        [
            "notification": Explanation.uuid(notification), "user": .string(user), "rule": .string(rule),
            "decisions": .array(decisions.map(\.json)), "outcomes": .array(outcomes.map(\.json)),
            "inbox": inbox.map(\.json) ?? .null, "waits_until": .optional(dueAt.map(RFC3339.string(from:))),
            "receipts": .array(
                receipts.map { ["at": Explanation.moment($0.at), "what": .string($0.what)] }),
        ]
    }
}

extension Explanation.Clear {
    fileprivate var json: JSONValue {
        [
            "notification": Explanation.uuid(notification), "user": .string(user),
            "noted_at": Explanation.moment(notedAt), "command": .optional(command?.uuidString.lowercased()),
            "sent_at": .optional(sentAt.map(RFC3339.string(from:))), "outcomes": .array(outcomes.map(\.json)),
        ]
    }
}

extension Explanation.Decision {
    fileprivate var json: JSONValue {
        [
            "at": Explanation.moment(at), "answer": .string(answer), "reason": .string(reason),
            "until": .optional(until.map(RFC3339.string(from:))),
        ]
    }
}

extension Explanation.Outcome {
    fileprivate var json: JSONValue {
        [
            "at": Explanation.moment(at), "origin": .string(origin),
            "device": .optional(device?.uuidString.lowercased()), "disposition": .string(disposition),
            "reason": .optional(reason),
        ]
    }
}

extension Explanation.Inbox {
    fileprivate var json: JSONValue {
        switch self {
        case .unread: ["read_at": .null]
        case .read(let at): ["read_at": Explanation.moment(at)]
        }
    }
}
