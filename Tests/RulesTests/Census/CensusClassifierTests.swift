import Foundation
import PushProtocol
import Testing

@testable import Rules

/// Where a notification is, by the reports of the stages.
@Suite struct CensusClassifierTests {
    private static let app = AppID(rawValue: "test")!
    private static let start = Timestamp(milliseconds: 1_767_225_600_000)

    private static func at(_ seconds: Int) -> Timestamp { start + .seconds(seconds) }

    /// Evidence for `seconds`: every third second each process reports, and each queue is looked at one second later.
    ///
    /// - Parameters:
    ///   - full: queues that always have a message.
    ///   - holding: services that hold a delivery from before the start.
    ///   - silent: services without a process; their queues have no consumer.
    ///   - lostAt: services with a second process whose last report is from then, and is not final.
    private static func evidence(
        seconds: Int, full: Set<WorkQueue> = [], holding: Set<String> = [], silent: Set<String> = [],
        consumers: Int = 1, lostAt: [String: Int] = [:]
    ) -> CensusEvidence {
        var evidence = CensusEvidence()
        let services = ["rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback"]
        let ids = Dictionary(uniqueKeysWithValues: services.map { ($0, UUID()) })
        for second in stride(from: 0, through: seconds, by: 3) {
            var processes: [CensusEvidence.Process] = []
            for service in services where !silent.contains(service) {
                processes.append(
                    CensusEvidence.Process(
                        service: service, process: ids[service]!, receivedAt: at(second), sentAt: at(second),
                        oldestAt: holding.contains(service) ? at(-1) : at(second), isFinal: false))
            }
            for (service, time) in lostAt {
                processes.append(
                    CensusEvidence.Process(
                        service: service, process: UUID(), receivedAt: at(min(second, time)),
                        sentAt: at(min(second, time)), oldestAt: at(min(second, time)), isFinal: false))
            }
            evidence.add(processes, now: at(second))
            for queue in Set(CensusStage.allCases.flatMap { $0.passages(of: app) }.joined().flatMap(\.queues)) {
                let isSilent = CensusStage.allCases.flatMap { $0.passages(of: app) }.joined()
                    .contains { $0.queues.contains(queue) && silent.contains($0.service) }
                evidence.add(
                    CensusEvidence.Probe(
                        at: at(second + 1), messages: full.contains(queue) ? 1 : 0,
                        consumers: isSilent ? 0 : consumers), of: queue)
            }
        }
        return evidence
    }

    private static let item = CensusItem(notification: UUID(), app: app, event: "e", decidedAt: start)

    private static func trail(_ marks: [String: CensusTrail.Mark]) -> CensusTrail {
        var trail = CensusTrail()
        for (service, mark) in marks { trail[service] = mark }
        return trail
    }

    private static func state(
        _ trail: CensusTrail = CensusTrail(), after seconds: Int = 40, evidence: CensusEvidence? = nil,
        _ change: (inout CensusItem) -> Void = { _ in }
    ) -> CensusState {
        var item = item
        change(&item)
        let evidence = evidence ?? Self.evidence(seconds: seconds)
        return CensusClassifier(evidence: evidence, now: at(seconds)).place(item, trail).state
    }

    @Test func `a young notification is on the way, and a later one is missing where no stage has it`() {
        #expect(Self.state(after: 14) == .onTheWay)
        #expect(Self.state() == .missingRegistry)
        #expect(Self.state(Self.trail(["token-registry": .settled(Self.at(2))])) == .missingSender)
        #expect(
            Self.state(
                Self.trail(["token-registry": .settled(Self.at(2)), "fcm-sender": .settled(Self.at(3))]))
                == .missingOutcomes)
    }

    @Test(arguments: [
        (WorkQueue.registryAppNotifications(.bulk, AppID(rawValue: "test")!), CensusState.atRegistry),
        (.registryNotifications(.interactive), .atRegistry), (.rulesEvents, .atRegistry),
        (.senderPushes(.apns, .interactive, AppID(rawValue: "test")!), .missingRegistry),
    ])
    func `a message in a queue of its stage may be the notification`(queue: WorkQueue, expected: CensusState) {
        #expect(Self.state(evidence: Self.evidence(seconds: 40, full: [queue])) == expected)
    }

    @Test(arguments: [
        ("token-registry", CensusState.atRegistry), ("rules", .atRegistry), ("apns-sender", .missingRegistry),
    ])
    func `an unsettled delivery of its stage may be the notification`(service: String, expected: CensusState) {
        #expect(Self.state(evidence: Self.evidence(seconds: 40, holding: [service])) == expected)
    }

    @Test func `a stage without reports and with consumers may have the notification`() {
        let settled = Self.trail(["token-registry": .settled(Self.at(2))])
        #expect(Self.state(settled, evidence: Self.evidence(seconds: 40, silent: ["fcm-sender"])) == .missingSender)
        let old = Self.evidence(seconds: 40, silent: ["rules", "token-registry", "apns-sender", "fcm-sender"])
        #expect(Self.state(evidence: old) == .missingRegistry)
        var consumed = Self.evidence(seconds: 40, silent: ["token-registry"])
        for lane in Lane.allCases {
            for queue in [WorkQueue.registryNotifications(lane), .registryAppNotifications(lane, Self.app)] {
                var probed = CensusEvidence.Probe(at: Self.at(40), messages: 0, consumers: 1)
                for second in stride(from: 1, through: 40, by: 3) {
                    probed.at = Self.at(second)
                    consumed.add(probed, of: queue)
                }
            }
        }
        // The first look counts, and it saw no consumer.
        #expect(Self.state(evidence: consumed) == .missingRegistry)
    }

    @Test func `a retried notification is retrying until its return, then has the grace of a new one`() {
        let retried = Self.trail(["token-registry": .retried(until: Self.at(30))])
        #expect(Self.state(retried, after: 40) == .retrying)
        #expect(Self.state(retried, after: 50) == .atRegistry)
        #expect(Self.state(retried, after: 80) == .missingRegistry)
        let both = Self.trail(["token-registry": .settled(Self.at(2)), "apns-sender": .retried(until: Self.at(900))])
        #expect(Self.state(both) == .retrying)
        #expect(Self.state(Self.trail(["rules": .retried(until: Self.at(900))])) == .retrying)
    }

    @Test func `a dead letter waits for an operator, and a row that rules still publishes is on the way`() {
        #expect(Self.state(Self.trail(["apns-sender": .deadLettered])) == .deadLetter)
        #expect(Self.state { $0.isUnpublished = true } == .onTheWay)
        #expect(Self.state { $0.isDeadRow = true } == .deadRow)
    }

    /// The process may have settled the notification and ended before its report.
    @Test func `after a process ended without its last report, the later stages must not have it either`() {
        let app = Self.app
        let queued = Self.evidence(
            seconds: 100, full: [.senderPushes(.apns, .interactive, app)], lostAt: ["token-registry": 6])
        #expect(Self.state(after: 100, evidence: queued) == .atRegistry)
        let empty = Self.evidence(seconds: 100, lostAt: ["token-registry": 6])
        #expect(Self.state(after: 100, evidence: empty) == .missingRegistry)
        // Without a lost report the waiting push is another one.
        let other = Self.evidence(seconds: 100, full: [.senderPushes(.apns, .interactive, app)])
        #expect(Self.state(after: 100, evidence: other) == .missingRegistry)
    }

    @Test func `evidence that feedback does not have is missing there`() {
        func state(_ trail: CensusTrail, _ evidence: CensusEvidence? = nil) -> CensusState {
            Self.state(trail, evidence: evidence) { item in
                item.state = .failed
                item.evidenceAt = Self.at(1)
            }
        }
        #expect(state(CensusTrail()) == .missingFeedback)
        #expect(state(Self.trail(["feedback": .settled(Self.at(2))])) == .failed)
        #expect(state(Self.trail(["feedback": .retried(until: Self.at(900))])) == .failed)
        #expect(state(CensusTrail(), Self.evidence(seconds: 40, full: [.feedbackOutcomes])) == .failed)
    }

    @Test func `after a process of feedback ended without its last report, evidence is not missing there`() {
        let placement = CensusClassifier(
            evidence: Self.evidence(seconds: 40, lostAt: ["feedback": 2]), now: Self.at(40)
        ).place(
            CensusItem(
                notification: UUID(), app: Self.app, event: "e", decidedAt: Self.start, evidenceAt: Self.at(1),
                state: .failed), CensusTrail())
        #expect(placement == .init(state: .failed, isOpen: false))
    }

    /// A sender without the broker publishes an outcome later than the outcome's time.
    @Test func `evidence that feedback reports after all is no longer missing`() {
        var interval = CensusInterval(start: Self.start)
        interval.counts = [CensusCount(app: "test", state: "failed", number: 1)]
        interval.items = [
            CensusItem(
                notification: UUID(), app: Self.app, event: "e", decidedAt: Self.start, evidenceAt: Self.at(1),
                state: .failed)
        ]
        let id = interval.items[0].notification
        interval.gaps = [id: .missingFeedback]
        func result(_ trail: CensusTrail) -> CensusResult {
            CensusResult(
                interval, [id: trail], by: CensusClassifier(evidence: CensusEvidence(), now: Self.at(40)))
        }
        #expect(interval.itemsToPlace(now: Self.at(40)).map(\.notification) == [id])
        #expect(result(CensusTrail()).gaps.map(\.state) == [.missingFeedback])
        let later = result(Self.trail(["feedback": .settled(Self.at(39))]))
        #expect(later.gaps.isEmpty && !later.isOpen && later.evidenceUntil == Self.at(1))
        #expect(later.counts.map(\.state) == ["failed"])
    }

    @Test func `each notification of an interval counts once`() {
        var interval = CensusInterval(start: Self.start)
        interval.counts = [
            CensusCount(app: "test", state: "accepted", number: 5),
            CensusCount(app: "test", state: "failed", number: 1),
        ]
        interval.open = ["test": 4]
        let failed = CensusItem(
            notification: UUID(), app: Self.app, event: "e", decidedAt: Self.start, evidenceAt: Self.at(1),
            state: .failed)
        let known = CensusItem(notification: UUID(), app: Self.app, event: "f", decidedAt: Self.start)
        interval.items = [Self.item, known, failed]
        interval.gaps = [known.notification: .missingSender]
        let classifier = CensusClassifier(evidence: Self.evidence(seconds: 40), now: Self.at(40))
        let result = CensusResult(interval, [:], by: classifier)
        #expect(result.counts.reduce(0) { $0 + $1.number } == 10)
        #expect(
            result.counts.map { "\($0.state) \($0.number)" } == [
                "accepted 5", "missing-feedback 1", "missing-registry 1", "missing-sender 1", "on-the-way 2",
            ])
        #expect(Set(result.gaps.map(\.item.event)) == ["e", "f"] && result.gaps.count == 3 && result.isOpen)
        #expect(result.reportsFrom == Self.start && result.evidenceUntil == nil)
    }

    @Test func `an interval without open notifications is final`() {
        var interval = CensusInterval(start: Self.start)
        interval.counts = [CensusCount(app: "test", state: "accepted", number: 5)]
        let result = CensusResult(interval, [:], by: CensusClassifier(evidence: CensusEvidence(), now: Self.at(40)))
        #expect(!result.isOpen && result.reportsFrom == nil && result.gaps.isEmpty)
        #expect(CensusPlan.due(Self.start, isOpen: false, elapsed: .zero, now: Self.at(40)) == Self.at(70))
        #expect(CensusPlan.due(Self.start, isOpen: false, elapsed: .zero, now: Self.at(71)) == Self.at(3671))
        #expect(CensusPlan.due(Self.start, isOpen: true, elapsed: .seconds(2), now: Self.at(40)) == Self.at(60))
    }

    @Test func `intervals are counted once after their end, from the first start of the census on`() {
        #expect(CensusPlan.new(after: nil, now: Self.at(17)) == [Self.at(0)])
        #expect(CensusPlan.new(after: Self.at(0), now: Self.at(17)) == [])
        #expect(CensusPlan.new(after: Self.at(0), now: Self.at(36)) == [Self.at(10), Self.at(20)])
        let late = CensusPlan.new(after: Self.at(0), now: Self.at(86_400))
        #expect(late.count == CensusPlan.mostNew && late.first == Self.at(86_400 - 3600))
    }
}
