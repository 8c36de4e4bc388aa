import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

/// The documents that `--json` prints. The README of `pushctl` describes their members.
extension RuleTool {
    static func json(rules: Int, files: Int, mistakes: [RuleProblem], hints: [String]) -> JSONValue {
        [
            "rules": .int(Int64(rules)), "files": .int(Int64(files)), "mistakes": .array(mistakes.map(json)),
            "hints": .array(hints.map(JSONValue.string)),
        ]
    }

    private static func json(_ mistake: RuleProblem) -> JSONValue {
        [
            "file": .string(mistake.file), "line": .int(Int64(mistake.line)), "key": .string(mistake.key),
            "problem": .string(mistake.problem),
        ]
    }

    static func json(_ dryRun: DryRun, _ platforms: Platforms) -> JSONValue {
        [
            "decisions": .array(dryRun.predictions.map { json($0, platforms) }),
            "refused": .array(
                dryRun.refusals.map {
                    ["at": time($0.at), "event": .string($0.event), "reason": .string($0.reason)]
                }),
        ]
    }

    private static func json(_ prediction: DryRun.PredictedDecision, _ platforms: Platforms) -> JSONValue {
        let decision = prediction.decision
        return [
            "at": time(prediction.at), "app": .string(prediction.app.rawValue), "event": .string(prediction.event),
            "rule": .string(prediction.rule), "user": .string(prediction.user.rawValue),
            "answer": .string(decision.answer.word), "reason": .string(decision.reason.rawValue),
            "until": decision.answer.until.map(time) ?? .null, "content": json(prediction.content),
            "inbox": json(prediction.kept), "requests": .array(platforms.json(prediction)),
        ]
    }

    private static func json(_ content: Content?) -> JSONValue {
        content.flatMap { try? WireCoding.encode($0) }.flatMap { try? WireCoding.decode(JSONValue.self, from: $0) }
            ?? .null
    }

    static func json(_ differences: [DryRunDifference]) -> JSONValue {
        [
            "differences": .array(
                differences.compactMap { difference in
                    guard let prediction = difference.new ?? difference.old else { return nil }
                    return [
                        "kind": .string(difference.kind.rawValue), "app": .string(prediction.app.rawValue),
                        "user": .string(prediction.user.rawValue), "event": .string(prediction.event),
                        "rule": .string(prediction.rule), "old_at": (difference.old?.at).map(time) ?? .null,
                        "new_at": (difference.new?.at).map(time) ?? .null,
                    ]
                })
        ]
    }

    private static func time(_ moment: Timestamp) -> JSONValue { .string(RFC3339.string(from: moment.date)) }
}
