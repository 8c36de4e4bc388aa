import FoundationEssentials
import PushProtocol

/// The last actions of people in the console.
enum AuditPage {
    /// The number of entries on the page.
    static let entries = 200

    static func page(_ entries: [AuditEntry]) -> Page {
        let rows = entries.map { entry in
            Parts.row([
                Parts.time(.string(RFC3339.string(from: entry.at))), "\(entry.person)", "\(entry.role.rawValue)",
                "\(entry.action.rawValue)", "\(entry.app ?? "–")", "\(entry.subject ?? "–")", "\(entry.reason ?? "–")",
                "\(entry.result)",
            ])
        }
        return Page(
            title: "Audit", section: .audit,
            content: Parts.table(
                "Last actions", ["Time", "Person", "Role", "Action", "App", "Subject", "Reason", "Result"], rows,
                none: "Nobody has acted yet."))
    }
}
