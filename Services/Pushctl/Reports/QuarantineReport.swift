import FeedbackStore
import FoundationEssentials
import Primitives
import PushProtocol

enum QuarantineReport {
    /// Explanations of the quarantine reasons that feedback stores.
    private static let causes: KeyValuePairs = [
        "storm": "a spike of bad tokens on the route: suspect the route before the tokens",
        "lane-silent": "the provider had accepted nothing on the route for a while: suspect the route",
        "environment-unknown": "the environment that refused the token is unknown",
        "reason-unclear":
            "repeated, but may be caused by the payload or the push type: check both",
    ]

    /// A line for each tripped guard, a table of the registrations, the total, and the explanations.
    static func lines(
        guards: [QuarantineStore.TrippedGuard], entries: [QuarantineStore.QuarantinedRegistration], total: Int
    ) -> [String] {
        var lines = guards.map { tripped in
            let figures =
                tripped.refused.map { " \($0) of \(tripped.answered ?? 0) responses were rejections in two minutes;" }
                ?? " a sender has paused the route;"
            return "guard tripped  \(tripped.route)  since \(time(tripped.since));\(figures)"
                + " until \(time(tripped.until)) unless it continues"
        }
        guard total > 0 else { return lines + ["nothing is quarantined"] }
        lines += table(entries).lines(isColored: Terminal.isColored)
        let shown = entries.count < total ? "; \(entries.count) shown" : ""
        lines.append("\(total) registrations are quarantined\(shown)")
        let met = Set(entries.map(\.cause))
        return lines + causes.filter { met.contains($0.key) }.map { "(\($0.key)) \($0.value)" }
    }

    private static func table(_ entries: [QuarantineStore.QuarantinedRegistration]) -> TextTable {
        var table = TextTable([
            .left("device"), .left("app"), .left("provider"), .left("environment"), .left("reason"), .left("cause"),
            .right("count"), .left("last"),
        ])
        for entry in entries {
            table.add([
                entry.device.uuidString.lowercased(), entry.app, entry.provider, entry.environment, entry.reason,
                "(\(entry.cause))", "\(entry.count)", time(entry.last),
            ])
        }
        return table
    }

    static func json(
        guards: [QuarantineStore.TrippedGuard], entries: [QuarantineStore.QuarantinedRegistration], total: Int
    ) -> JSONValue {
        let registrations: [JSONValue] = entries.map { entry in
            [
                "device": .id(entry.device), "app": .string(entry.app), "provider": .string(entry.provider),
                "environment": .string(entry.environment), "reason": .string(entry.reason),
                "cause": .string(entry.cause), "count": .number(entry.count), "first_at": .time(entry.first),
                "last_at": .time(entry.last),
            ]
        }
        return [
            "guards": .array(guards.map(json)), "registrations": .array(registrations), "total": .number(total),
        ]
    }

    static func json(_ tripped: QuarantineStore.TrippedGuard) -> JSONValue {
        [
            "route": .string(tripped.route), "since": .time(tripped.since), "until": .time(tripped.until),
            "refused": tripped.refused.map { .int($0) } ?? .null,
            "answered": tripped.answered.map { .int($0) } ?? .null,
        ]
    }

    static func table(_ evidence: [QuarantineStore.Evidence]) -> TextTable {
        var table = TextTable([
            .left("observed"), .left("finding"), .left("reason"), .left("decision"), .left("cause"),
            .left("notification"),
        ])
        for piece in evidence {
            table.add([
                time(piece.observed), piece.finding, piece.reason, piece.decision, piece.cause,
                piece.notification.uuidString.lowercased(),
            ])
        }
        return table
    }

    static func json(_ piece: QuarantineStore.Evidence) -> JSONValue {
        [
            "observed_at": .time(piece.observed), "finding": .string(piece.finding), "reason": .string(piece.reason),
            "decision": .string(piece.decision), "cause": .optional(piece.cause),
            "notification": .id(piece.notification),
        ]
    }

    private static func time(_ date: Date) -> String { RFC3339.string(from: date) }
}
