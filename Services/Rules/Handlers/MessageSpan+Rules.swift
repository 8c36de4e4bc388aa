import FoundationEssentials
import Messaging
import PushProtocol
import RuleEngine
import RuleLanguage

extension MessageSpan {
    /// Sets the rules that matched, and the number of recipients by answer.
    func describe(_ answers: [UUID: RuleDecision.Answer], _ drafts: [NotificationDraft]) {
        set("heliograph.rules", .texts(drafts.map(\.rendered.rule)))
        var counts: [String: Int] = [:]
        for answer in answers.values { counts[answer.word, default: 0] += 1 }
        for (word, count) in counts { set("heliograph.recipients.\(word)", .number(count)) }
    }
}
