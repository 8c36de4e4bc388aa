import FeedbackStore
import FoundationEssentials
import PushProtocol

/// Formats the quarantine.
enum QuarantineReport {
    /// Explanations of the quarantine reasons that feedback stores.
    private static let causes: KeyValuePairs = [
        "storm": "a spike of bad tokens on the route: suspect the route before the tokens",
        "lane-silent": "the provider had accepted nothing on the route for a while: suspect the route",
        "environment-unknown": "the environment that refused the token is unknown",
        "reason-unclear":
            "repeated, but may be caused by the payload or the push type: check both",
    ]

    /// One line per tripped guard and per registration, the total, and the explanations.
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
        lines += entries.map { entry in
            [
                entry.device.uuidString.lowercased(), entry.app, entry.provider, entry.environment, entry.reason,
                "(\(entry.cause))", "\(entry.count)×", "last \(time(entry.last))",
            ].joined(separator: "  ")
        }
        let shown = entries.count < total ? "; \(entries.count) shown" : ""
        lines.append("\(total) registrations are quarantined\(shown)")
        let met = Set(entries.map(\.cause))
        return lines + causes.filter { met.contains($0.key) }.map { "(\($0.key)) \($0.value)" }
    }

    static func line(_ piece: QuarantineStore.Evidence) -> String {
        let cause = piece.cause.map { " (\($0))" } ?? ""
        return [
            time(piece.observed), piece.finding, piece.reason, piece.decision + cause,
            "notification \(piece.notification.uuidString.lowercased())",
        ].joined(separator: "  ")
    }

    private static func time(_ date: Date) -> String { RFC3339.string(from: date) }
}
