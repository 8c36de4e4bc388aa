import FoundationEssentials
import PushProtocol

/// How the quarantine is told to a person.
enum QuarantineReport {
    /// One line for each tripped guard, one for each registration, and how many there are in all.
    static func lines(
        guards: [QuarantineStore.Guard], entries: [QuarantineStore.Entry], total: Int
    ) -> [String] {
        var lines = guards.map { tripped in
            let figures = tripped.refused.map { " \($0) of \(tripped.answered ?? 0) refused in two minutes;" } ?? ""
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
        return lines + ["\(total) registrations are quarantined\(shown)"]
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
