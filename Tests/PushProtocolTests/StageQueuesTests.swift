import PushProtocol
import Testing

@Suite struct StageQueuesTests {
    private let queues = WorkQueue.all(apps: ["family-portal", "each-app", "events"].compactMap(AppID.init(rawValue:)))
    private let stages: [BusRole] = [.rules, .tokenRegistry, .apnsSender, .fcmSender, .webPushSender, .feedback]

    @Test func `the pattern of a stage matches its work queues, and nothing else of the topology`() throws {
        let all = Topology(apps: ["family-portal"].compactMap(AppID.init(rawValue:))).queues.map(\.name)
        for stage in stages {
            let pattern = try Regex(try #require(WorkQueue.pattern(of: stage)))
            for queue in queues { #expect((queue.name.wholeMatch(of: pattern) != nil) == (queue.stage == stage)) }
            let consumed = try Regex(stage.permissions.read)
            for name in all where name.wholeMatch(of: pattern) != nil {
                #expect(name.wholeMatch(of: consumed) != nil && !name.hasSuffix(".dead"), "\(stage): \(name)")
            }
        }
    }

    @Test func `the patterns by urgency divide the queues of a stage`() throws {
        for stage in stages {
            let patterns = try QueueUrgency.allCases.compactMap { urgency in
                try WorkQueue.pattern(of: stage, urgency: urgency).map { (urgency, try Regex($0)) }
            }
            for queue in queues where queue.stage == stage {
                let matching = patterns.filter { queue.name.wholeMatch(of: $0.1) != nil }.map(\.0)
                #expect(matching == [queue.urgency], "\(queue.name)")
            }
        }
        #expect(WorkQueue.pattern(of: .feedback, urgency: .interactive) == nil)
        #expect(WorkQueue.pattern(of: .upstream) == nil)
    }
}
