import FoundationEssentials
package import PushProtocol

/// The JSON of the operator API; the `openapi.yaml` of rules documents its members.
extension Revocation {
    package var json: JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(id.uuidString.lowercased()), "app": .string(app), "event": .null, "notification": .null,
            "item": .null, "user": .optional(user), "inbox": .string(inbox.rawValue),
            "source": .string(source.rawValue), "requested_by": .string(requestedBy), "reason": .optional(reason),
            "requested_at": .string(RFC3339.string(from: requestedAt)),
            "ended_at": .optional(endedAt.map(RFC3339.string(from:))), "revoked": effect.json,
            "campaigns": .array(campaigns.map { .string($0.uuidString.lowercased()) }),
        ]
        switch target {
        case .event(let event): members["event"] = .string(event)
        case .notification(let notification):
            members["notification"] = .string(notification.uuidString.lowercased())
        case .item(let item, _): members["item"] = .string(item)
        }
        return .object(members)
    }

    /// The line of `pushctl explain`, and the first line of `pushctl revoke`.
    package var line: String {
        let who = user.map { " for “\($0)”" } ?? ""
        let why = reason.map { ": \($0)" } ?? ""
        let state =
            endedAt.map { "carried out \(RFC3339.string(from: $0)): \(effect.text)" }
            ?? "in progress: \(effect.text) so far"
        return "(revoked)  \(RFC3339.string(from: requestedAt))  by \(requestedBy)\(who)\(why)  \(state)"
    }

    /// A line for each campaign of the event.
    package var campaignLines: [String] {
        campaigns.map { id in
            let id = id.uuidString.lowercased()
            return user == nil
                ? "the campaign \(id) is cancelled, and its queued pushes are not sent"
                : "the campaign \(id) goes on: rules does not know its users"
        }
    }
}

extension Revocation.Effect {
    package var json: JSONValue {
        [
            "held": .int(Int64(held)), "gathered": .int(Int64(gathered)), "fan_outs": .int(Int64(fanOuts)),
            "pushes": .int(Int64(pushes)), "shown": .int(Int64(shown)), "inbox_items": .int(Int64(inboxItems)),
        ]
    }

    package var text: String {
        "\(held) held, \(gathered) gathered, \(fanOuts) fan-outs, \(pushes) pushes, \(shown) shown, "
            + "\(inboxItems) inbox items"
    }
}
