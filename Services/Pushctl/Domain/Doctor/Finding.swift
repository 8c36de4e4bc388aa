import Primitives
import PushProtocol

/// A result of `pushctl doctor`: a check, its finding and the next step.
struct Finding: Hashable, Sendable {
    enum Severity: String, Hashable, Sendable, CaseIterable {
        /// The check found nothing.
        case ok
        /// The check was left out, for example because a setting is missing.
        case skipped
        /// Works now, but is likely to fail, or hides a failure.
        case warning
        /// Does not work, or loses data.
        case error
    }

    var severity: Severity
    /// The name of the check, such as `topology`.
    var check: String
    var message: String
    /// The next step; `nil` if there is none.
    var cure: String?

    static func ok(_ check: String, _ message: String) -> Finding {
        Finding(severity: .ok, check: check, message: message)
    }

    static func skipped(_ check: String, _ message: String, cure: String? = nil) -> Finding {
        Finding(severity: .skipped, check: check, message: message, cure: cure)
    }

    static func warning(_ check: String, _ message: String, cure: String) -> Finding {
        Finding(severity: .warning, check: check, message: message, cure: cure)
    }

    static func error(_ check: String, _ message: String, cure: String) -> Finding {
        Finding(severity: .error, check: check, message: message, cure: cure)
    }

    var json: JSONValue {
        [
            "severity": .string(severity.rawValue), "check": .string(check), "message": .string(message),
            "cure": .optional(cure),
        ]
    }
}

extension [Finding] {
    /// These findings, or one that the check found nothing.
    func orOK(_ check: String, _ message: String) -> [Finding] { isEmpty ? [.ok(check, message)] : self }
}

/// All findings, in the order of the checks.
struct DoctorReport: Hashable, Sendable {
    var findings: [Finding]

    func count(_ severity: Finding.Severity) -> Int { findings.count { $0.severity == severity } }

    var isHealthy: Bool { count(.error) == 0 }

    var json: JSONValue {
        [
            "healthy": .bool(isHealthy), "errors": .int(Int64(count(.error))),
            "warnings": .int(Int64(count(.warning))), "skipped": .int(Int64(count(.skipped))),
            "findings": .array(findings.map(\.json)),
        ]
    }

    /// A table of the findings, the cures, and a summary.
    func lines(isColored: Bool) -> [String] {
        var table = TextTable([.left("severity"), .left("check"), .left("finding")])
        for finding in findings {
            table.add([
                TextTable.Cell(finding.severity.rawValue, finding.severity.style), TextTable.Cell(finding.check),
                TextTable.Cell(finding.message),
            ])
        }
        var lines: [String] = []
        for (line, finding) in zip(table.lines(isColored: isColored), [nil] + findings) {
            lines.append(line)
            if let cure = finding?.cure { lines.append("          next: \(TextTable.printable(cure))") }
        }
        let summary = "errors: \(count(.error)), warnings: \(count(.warning)), skipped: \(count(.skipped))"
        return lines + [summary]
    }
}

extension Finding.Severity {
    fileprivate var style: TextTable.Style {
        switch self {
        case .ok: .green
        case .skipped: .plain
        case .warning: .yellow
        case .error: .red
        }
    }
}
