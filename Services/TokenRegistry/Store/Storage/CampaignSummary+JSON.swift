import FoundationEssentials
package import PushProtocol

extension CampaignStore.CampaignSummary {
    /// The fraction of the audience processed, 0 to 1. Below 1 until the end, because the audience size is an estimate.
    package var fraction: Double {
        if state == "done" { return 1 }
        guard let estimate, estimate > 0 else { return 0 }
        return min(0.99, Double(looked) / Double(estimate))
    }

    /// The campaign as `pushctl campaigns --json` and the HTTP API show it. Times are RFC 3339.
    package var json: JSONValue {
        func time(_ date: Date?) -> JSONValue { .optional(date.map(RFC3339.string(from:))) }
        return [
            "id": .string(id.uuidString.lowercased()), "app": .string(app), "rule": .string(rule),
            "audience": .string(audience), "state": .string(state), "created_at": time(created),
            "begun_at": time(begun), "finished_at": time(finished),
            "rate": rate.map { .int(Int64($0)) } ?? .null, "estimate": estimate.map { .int($0) } ?? .null,
            "processed": .int(looked), "fraction": .double(fraction), "users": .int(users),
            "without_device": .int(without), "devices": .int(devices), "messages": .int(pushes),
            "ranges": .int(Int64(ranges)), "ranges_done": .int(Int64(rangesDone)),
            "ranges_dead": .int(Int64(rangesDead)), "dead_reasons": .array(deadReasons.map(JSONValue.string)),
        ]
    }
}
