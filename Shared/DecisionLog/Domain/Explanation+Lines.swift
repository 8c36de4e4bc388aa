import FoundationEssentials
import PushProtocol

/// A story as `pushctl explain` prints it.
extension Explanation {
    /// One line for the event, one for each crowd under way, and for each user some for decisions, outcomes and inbox; then
    /// what the reasons mean.
    package var lines: [String] { [heading] + underWay + told + Self.legend(of: reasons) }

    /// The line for the event.
    package var heading: String {
        "\(app)  \(type)  \(id)  from \(source)  arrived \(Self.time(arrivedAt))  rules \(ruleSet.uuidString.lowercased())"
    }

    /// A line for each crowd that is still being told.
    package var underWay: [String] {
        crowds.map { crowd in
            let left = crowd.leftAtMost.map { "at most \($0) are left" } ?? "how many are left is not known"
            let decided = "\(crowd.decided) people were decided about so far"
            return "  (a crowd)  \(crowd.rule)  told in steps: \(decided), \(left)"
        }
    }

    /// The lines for the users of this page.
    package var told: [String] {
        guard !stories.isEmpty else {
            return crowds.isEmpty
                ? ["  nobody: no rule matches, or it names nobody who is left to tell"]
                : ["  nobody yet: whom it is about may still have their turn"]
        }
        return stories.flatMap { story in
            ["  \(story.user)  \(story.rule)  \(story.notification.uuidString.lowercased())"]
                + story.lines.map { "    \($0)" }
        }
    }

    /// What these reasons mean, a line each.
    package static func legend(of reasons: Set<String>) -> [String] {
        meanings.filter { reasons.contains($0.key) }.map { "(\($0.key)) \($0.value)" }
    }

    static func time(_ date: Date) -> String { RFC3339.string(from: date) }
}

extension Explanation.Story {
    fileprivate var lines: [String] {
        var lines = decisions.map { decision in
            let until = decision.until.map { " until \(Explanation.time($0))" } ?? ""
            return "\(Explanation.time(decision.at))  \(decision.answer)\(until)  (\(decision.reason))"
        }
        if let dueAt { lines.append("it waits; it is judged again at \(Explanation.time(dueAt))") }
        lines += outcomes.map { outcome in
            let device = outcome.device.map { "  \($0.uuidString.lowercased())" } ?? ""
            let reason = outcome.reason.map { "  \($0)" } ?? ""
            return "\(Explanation.time(outcome.at))  \(outcome.origin)\(device)  \(outcome.disposition)\(reason)"
        }
        if outcomes.isEmpty, decisions.last?.answer.hasPrefix("push") == true {
            lines.append("no answer yet from the registry or a provider")
        }
        switch inbox {
        case .unread: lines.append("in the inbox, unread")
        case .read(let at): lines.append("in the inbox, read \(Explanation.time(at))")
        case nil: break
        }
        return lines + receipts.map { "\($0.what) by this person \(Explanation.time($0.at))" }
    }
}
