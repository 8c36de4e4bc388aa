import AMQP
import Primitives
import PushProtocol
import Testing

@testable import Messaging

@Suite struct PendingSettlementTests {
    private func settlement(
        _ disposition: Disposition, outbound: [Outbound] = [], attempt: Int = 1, remainingRounds: Int? = nil,
        firstSeen: Int64 = 5, headers: [String: AMQPValue] = [:]
    ) -> PendingSettlement {
        let ours: [String: AMQPValue] = [
            HeaderName.attempt: .int(Int64(attempt)), HeaderName.firstSeen: .int(firstSeen),
        ]
        let delivery = delivery(
            1, exchange: ExchangeName.return.name, routingKey: queue.name,
            properties: AMQPProperties(headers: ours.merging(headers) { $1 }))
        let inbound = Inbound(delivery, queue: queue, now: Timestamp(milliseconds: 7))
        return PendingSettlement(
            inbound, disposition: ResolvedDisposition(disposition, attempt: attempt, maximumAttempts: 8),
            outbound: outbound,
            routing: RepublishRouting(service: "rules"), remainingRounds: remainingRounds)
    }

    @Test func `the outbound is confirmed, then the copy, then the message is acknowledged`() {
        var settlement = settlement(.deadLetter(.test), outbound: [.notification("a"), .notification("b")])
        #expect(settlement.next.published == ["notifications", "notifications"])
        settlement.record([.confirmed, .confirmed])
        #expect(settlement.next.published == ["dead"])
        settlement.record([.confirmed])
        #expect(settlement.next.isAcknowledge)
    }

    @Test func `only unconfirmed messages are published again`() {
        var settlement = settlement(.done, outbound: ["a", "b", "c"].map { .notification($0) })
        settlement.record([.nacked, .confirmed, .returned(code: 312, text: "NO_ROUTE")])
        guard case .publish(let again) = settlement.next else {
            Issue.record("nothing is published again")
            return
        }
        #expect(again.map { String(decoding: $0.body, as: UTF8.self) } == ["a", "c"])
    }

    @Test(arguments: [AMQPConfirmation.nacked, .returned(code: 312, text: "NO_ROUTE")])
    func `a message stays unsettled until its copy is confirmed`(answer: AMQPConfirmation) {
        var settlement = settlement(.retry(after: .seconds(1), .test))
        settlement.record([answer])
        #expect(settlement.next.published == ["retry.5s"])
    }

    @Test(arguments: [(0, "5s"), (29, "5s"), (30, "30s"), (600, "2m"), (100_000, "15m")])
    func `an unroutable outbound postpones its input for about its age`(
        age: Int64, level: String
    ) throws {
        var settlement = settlement(
            .done, outbound: [.notification("a"), .notification("b")], attempt: 4, remainingRounds: 2)
        let noRoute = AMQPConfirmation.returned(code: 312, text: "NO_ROUTE")
        settlement.record([.confirmed, noRoute])
        #expect(settlement.next.published == ["notifications"])
        settlement.record([noRoute], now: Timestamp(milliseconds: 5 + age * 1000))
        guard case .republish(let copy) = settlement.next else {
            Issue.record("nothing is published")
            return
        }
        #expect(copy.exchange == "retry.\(level)")
        #expect(copy.text == "{}")
        #expect(copy.properties.headers[HeaderName.attempt]?.int == 4)
        #expect(settlement.disposition.reason?.code == "outbound-unroutable")
    }

    /// An operator may have written these headers; no value may crash the process.
    @Test(arguments: [(Int64.min, "15m"), (Int64.max, "5s")])
    func `an impossible first-seen time still selects a retry level`(firstSeen: Int64, level: String) {
        var settlement = settlement(.done, outbound: [.notification("a")], remainingRounds: 1, firstSeen: firstSeen)
        settlement.record([.returned(code: 312, text: "NO_ROUTE")], now: Timestamp(milliseconds: 1_767_225_600_000))
        guard case .republish(let copy) = settlement.next else {
            Issue.record("nothing is published")
            return
        }
        #expect(copy.exchange == "retry.\(level)")
    }

    @Test(arguments: [AMQPConfirmation.nacked, .returned(code: 404, text: "NOT_FOUND")])
    func `a nack or a missing exchange is retried without postponing`(answer: AMQPConfirmation) {
        var settlement = settlement(.done, outbound: [.notification("a")], remainingRounds: 1)
        for _ in 1...5 { settlement.record([answer]) }
        #expect(settlement.next.published == ["notifications"])
    }

    @Test func `a permanently refused outbound dead-letters its input`() {
        var settlement = settlement(.done, outbound: [.notification("a")])
        settlement.record([.returned(code: 502, text: "routing key too long")])
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.disposition.reason?.code == "outbound-refused")
    }

    @Test func `an outbound refused for its size dead-letters its input`() {
        var settlement = settlement(.done, outbound: [.notification("a")])
        settlement.record([.returned(code: 406, text: "PRECONDITION_FAILED - message size 9 is larger")])
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.disposition.reason?.code == "outbound-refused")
    }

    @Test(arguments: [501, 502])
    func `a copy with refused headers is published without them, then rejected`(code: Int) {
        var settlement = settlement(.deadLetter(.test), headers: ["theirs": "long"])
        settlement.record([.returned(code: code, text: "headers too long")])
        guard case .republish(let copy) = settlement.next else {
            Issue.record("there is no copy")
            return
        }
        #expect(copy.exchange == "dead" && copy.properties.headers["theirs"] == nil)
        #expect(copy.properties.headers[HeaderName.reason]?.text == "test-reason")
        #expect(copy.body == Array("{}".utf8))
        settlement.record([.returned(code: code, text: "still too long")])
        #expect(settlement.next.isReject && settlement.isRejected)
        #expect(settlement.disposition.reason?.code == "rejected")
    }

    @Test func `a retry whose copy cannot be published becomes a dead letter`() {
        var settlement = settlement(.retry(after: .seconds(1), .test), headers: ["theirs": "long"])
        settlement.record([.returned(code: 501, text: "headers too long")])
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.disposition.reason?.code == "copy-refused")
    }

    @Test func `a message whose copy is refused for its size is rejected`() {
        var settlement = settlement(.deadLetter(.test))
        settlement.record([.returned(code: 406, text: "PRECONDITION_FAILED - message size 9 is larger")])
        #expect(settlement.next.isReject)
        #expect(settlement.disposition.reason?.detail.contains("test-reason") == true)
    }

    @Test func `a retry uses the shortest sufficient level`() {
        for (delay, level) in [(1, "5s"), (5, "5s"), (6, "30s"), (600, "15m"), (100_000, "6h")] {
            #expect(settlement(.retry(after: .seconds(delay), .test)).next.published == ["retry.\(level)"])
        }
    }

    @Test func `after the last attempt a retry becomes a dead letter with the last reason`() {
        let settlement = settlement(.retry(after: .seconds(1), .test), attempt: 8)
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.disposition.reason?.code == "attempts-exhausted")
        #expect(settlement.disposition.reason?.detail.contains("test-reason") == true)
    }

    @Test func `postponing counts no attempt`() {
        let settlement = settlement(.postpone(after: .seconds(10), .test), attempt: 8)
        guard case .republish(let message) = settlement.next else {
            Issue.record("not published")
            return
        }
        #expect(message.exchange == "retry.30s")
        #expect(message.properties.headers[HeaderName.attempt] == 8)
    }

    @Test func `a failing message goes through the retry levels in order`() {
        let dispositions = (1...8).map { ResolvedDisposition(failure: "boom", attempt: $0, maximumAttempts: 8) }
        let levels = dispositions.compactMap { if case .retry(let level, _) = $0 { level.rawValue } else { nil } }
        #expect(levels == ["5s", "30s", "2m", "15m", "1h", "6h", "6h"])
        #expect(dispositions.last == .deadLetter(Reason(code: "handler-failed", detail: "boom")))
    }

    @Test func `the ceiling of the wait doubles from 200 ms to five seconds`() {
        let backoff = StagePolicy().backoff
        let ceilings = (1...7).map { backoff.ceiling(afterFailures: $0) }
        #expect(ceilings == [200, 400, 800, 1600, 3200, 5000, 5000].map { .milliseconds($0) })
    }
}

extension PendingSettlement.SettlementAction {
    fileprivate var published: [String] {
        switch self {
        case .publish(let messages): messages.map(\.exchange.name)
        case .republish(let copy): [copy.exchange]
        case .acknowledge, .reject: []
        }
    }
    fileprivate var isReject: Bool { if case .reject = self { true } else { false } }
    fileprivate var isAcknowledge: Bool { if case .acknowledge = self { true } else { false } }
}
