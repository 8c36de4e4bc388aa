import PushProtocol
import RegistryStore

struct ImportProgress: Sendable {
    /// The maximum number of reasons in a summary.
    private static let reasonLimit = 10

    /// In bytes.
    let total: Int
    /// The state at the start of this run.
    let first: ImportState

    /// `[#########……] 45%  450000 lines  21000/s  3 refused  0:42 left`
    func line(_ state: ImportState, after elapsed: Duration, width: Int = 24) -> String {
        let share = total == 0 ? 1 : min(1, Double(state.position) / Double(total))
        let filled = Int(share * Double(width))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        return "[\(bar)] \(Int(share * 100))%  \(text(state, after: elapsed))"
    }

    /// Without a bar, for logs.
    func plain(_ state: ImportState, after elapsed: Duration) -> String {
        let share = total == 0 ? 1 : min(1, Double(state.position) / Double(total))
        return "\(Int(share * 100))%  \(text(state, after: elapsed))"
    }

    private func text(_ state: ImportState, after elapsed: Duration) -> String {
        var parts = ["\(state.line) lines"]
        let seconds = elapsed / .seconds(1)
        if seconds > 0 {
            parts.append("\(Int(Double(state.line - first.line) / seconds))/s")
            let pace = Double(state.position - first.position) / seconds
            if pace > 0 {
                let left = Int(Double(total - state.position) / pace)
                parts.append("\(left / 60):\(left % 60 < 10 ? "0" : "")\(left % 60) left")
            }
        }
        if state.refused > 0 { parts.append("\(state.refused) refused") }
        return parts.joined(separator: "  ")
    }

    static func json(_ state: ImportState, report: String) -> JSONValue {
        [
            "lines": .number(state.line), "taken": .number(state.taken), "superseded": .number(state.superseded),
            "refused": .number(state.refused), "report": state.refused > 0 ? .string(report) : .null,
        ]
    }

    /// The result of the import.
    ///
    /// - Parameter reasons: the reasons in the report, the most frequent first.
    static func summary(
        _ state: ImportState, report: String, reasons: [(reason: String, count: Int)] = []
    ) -> [String] {
        var lines = ["\(state.line) lines: \(state.taken) registrations taken"]
        if state.superseded > 0 { lines.append("\(state.superseded) skipped: the registry has newer data") }
        if state.refused > 0 { lines.append("\(state.refused) refused: see \(report) for each line and reason") }
        for (reason, count) in reasons.prefix(reasonLimit) { lines.append("  \(count)  \(reason)") }
        if reasons.count > reasonLimit { lines.append("  … and \(reasons.count - reasonLimit) other reasons") }
        return lines
    }
}
