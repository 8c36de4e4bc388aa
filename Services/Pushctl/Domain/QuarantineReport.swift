import FoundationEssentials
import PushProtocol

/// How the quarantine is told to a person.
enum QuarantineReport {
    /// Why evidence was not believed, as feedback writes it and as a person reads it.
    private static let doubts: KeyValuePairs = [
        "storm": "far more tokens of the lane were refused than usual: suspect the lane before the tokens",
        "lane-silent": "the provider had taken nothing on the lane for a while: the lane may be what is wrong",
        "environment-unknown": "nobody knows which environment refused the token",
        "reason-unclear":
            "came again and again, but may be the payload's fault or a push of another kind's: look at both",
    ]

    /// One line for each tripped guard, one for each registration, how many there are in all, and what their doubts mean.
    static func lines(
        guards: [QuarantineStore.Guard], entries: [QuarantineStore.Entry], total: Int
    ) -> [String] {
        var lines = guards.map { tripped in
            let figures =
                tripped.refused.map { " \($0) of \(tripped.answered ?? 0) answers were refusals in two minutes;" }
                ?? " a sender has halted the lane;"
            return "guard tripped  \(tripped.lane)  since \(time(tripped.since));\(figures)"
                + " until \(time(tripped.until)) unless it goes on"
        }
        guard total > 0 else { return lines + ["nothing is quarantined"] }
        lines += entries.map { entry in
            [
                entry.device.uuidString.lowercased(), entry.app, entry.provider, entry.environment, entry.reason,
                "(\(entry.doubt))", "\(entry.count)×", "last \(time(entry.last))",
            ].joined(separator: "  ")
        }
        let shown = entries.count < total ? "; \(entries.count) shown" : ""
        lines.append("\(total) registrations are quarantined\(shown)")
        let met = Set(entries.map(\.doubt))
        return lines + doubts.filter { met.contains($0.key) }.map { "(\($0.key)) \($0.value)" }
    }

    static func line(_ piece: QuarantineStore.Piece) -> String {
        let doubt = piece.doubt.map { " (\($0))" } ?? ""
        return [
            time(piece.observed), piece.finding, piece.reason, piece.decision + doubt,
            "notification \(piece.notification.uuidString.lowercased())",
        ].joined(separator: "  ")
    }

    private static func time(_ date: Date) -> String { RFC3339.string(from: date) }
}
