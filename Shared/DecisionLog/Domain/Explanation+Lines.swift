import FoundationEssentials
import PushProtocol

/// The text that `pushctl explain` prints.
extension Explanation {
    /// The event's line, a line for each fan-out in progress, revocation and clear command, the lines of each notification,
    /// and the legend of reasons.
    package var lines: [String] {
        [heading] + fanOutLines + revocationLines + clearLines + notificationLines + Self.legend(of: reasons)
    }

    /// The event's line.
    package var heading: String {
        "\(app)  \(type)  \(id)  from \(source)  arrived \(Self.time(arrivedAt))  "
            + "rules \(ruleSet.uuidString.lowercased())"
    }

    package var fanOutLines: [String] {
        fanOuts.map { fanOut in
            let left = fanOut.leftAtMost.map { "at most \($0) left" } ?? "the number left is unknown"
            return "  (fan-out)  \(fanOut.rule)  in progress: \(fanOut.decided) users decided, \(left)"
        }
    }

    /// The lines of this page's notifications.
    package var notificationLines: [String] {
        guard !traces.isEmpty else {
            return fanOuts.isEmpty
                ? ["  no users: no rule matches, or no recipient is left"]
                : ["  no users yet: the fan-out is in progress"]
        }
        return traces.flatMap { trace in
            ["  \(trace.user)  \(trace.rule)  \(trace.notification.uuidString.lowercased())"]
                + trace.lines.map { "    \($0)" }
        }
    }

    package var revocationLines: [String] { revocations.map { "  \($0.line)" } }

    package var clearLines: [String] {
        clears.map { clear in
            let copy = "  (cleared)  \(clear.user)  \(clear.notification.uuidString.lowercased())  "
            guard let command = clear.command, let sentAt = clear.sentAt else {
                return copy + "shown on phones; the clear command waits since \(Self.time(clear.notedAt))"
            }
            let outcomes = clear.outcomes.map { "\($0.origin) \($0.disposition)\($0.reason.map { " \($0)" } ?? "")" }
            let answers = outcomes.isEmpty ? "no outcome yet" : outcomes.joined(separator: ", ")
            return copy + "clear command \(command.uuidString.lowercased()) \(Self.time(sentAt)): \(answers)"
        }
    }

    /// Returns a line with the meaning of each reason.
    package static func legend(of reasons: Set<String>) -> [String] {
        meanings.filter { reasons.contains($0.key) }.map { "(\($0.key)) \($0.value)" }
    }

    static func time(_ date: Date) -> String { RFC3339.string(from: date) }
}

extension Explanation.NotificationTrace {
    fileprivate var lines: [String] {
        var lines = decisions.map { decision in
            let until = decision.until.map { " until \(Explanation.time($0))" } ?? ""
            return "\(Explanation.time(decision.at))  \(decision.answer)\(until)  (\(decision.reason))"
        }
        if let dueAt { lines.append("held; decided again at \(Explanation.time(dueAt))") }
        lines += outcomes.map { outcome in
            let device = outcome.device.map { "  \($0.uuidString.lowercased())" } ?? ""
            let reason = outcome.reason.map { "  \($0)" } ?? ""
            return "\(Explanation.time(outcome.at))  \(outcome.origin)\(device)  \(outcome.disposition)\(reason)"
        }
        if outcomes.isEmpty, decisions.last?.answer.hasPrefix("push") == true {
            lines.append("no outcome from the registry or a provider yet")
        }
        switch inbox {
        case .unread: lines.append("in the inbox, unread")
        case .read(let at): lines.append("in the inbox, read \(Explanation.time(at))")
        case nil: break
        }
        return lines + receipts.map { "\($0.what) by the user \(Explanation.time($0.at))" }
    }
}
