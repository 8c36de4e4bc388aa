import AMQP
import PushProtocol
import Testing

@testable import Messaging

@Suite struct SettlementTests {
    private func settlement(
        _ disposition: Disposition, outbound: [Outbound] = [], attempt: Int = 1, patience: Int? = nil,
        firstSeen: Int64 = 5, headers: [String: AMQPValue] = [:]
    ) -> Settlement {
        let ours: [String: AMQPValue] = [
            HeaderName.attempt: .int(Int64(attempt)), HeaderName.firstSeen: .int(firstSeen),
        ]
        let delivery = delivery(
            1, exchange: ExchangeName.return.name, routingKey: queue.name,
            properties: AMQPProperties(headers: ours.merging(headers) { $1 }))
        let inbound = Inbound(delivery, queue: queue, now: Timestamp(milliseconds: 7))
        return Settlement(
            inbound, conclusion: Conclusion(disposition, attempt: attempt, maximumAttempts: 8), outbound: outbound,
            redirection: Redirection(service: "rules"), patience: patience)
    }

    @Test func `the outbound is confirmed before the copy is published, and that before the message is acknowledged`() {
        var settlement = settlement(.deadLetter(.test), outbound: [.notification("a"), .notification("b")])
        #expect(settlement.next.published == ["notifications", "notifications"])
        settlement.record([.confirmed, .confirmed])
        #expect(settlement.next.published == ["dead"])
        settlement.record([.confirmed])
        #expect(settlement.next.isAcknowledge)
    }

    @Test func `only what was not confirmed is published again`() {
        var settlement = settlement(.done, outbound: ["a", "b", "c"].map { .notification($0) })
        settlement.record([.nacked, .confirmed, .returned(code: 312, text: "NO_ROUTE")])
        guard case .publish(let again) = settlement.next else {
            Issue.record("nothing is published again")
            return
        }
        #expect(again.map { String(decoding: $0.body, as: UTF8.self) } == ["a", "c"])
    }

    @Test(arguments: [AMQPConfirmation.nacked, .returned(code: 312, text: "NO_ROUTE")])
    func `a copy that the broker did not take keeps the message unsettled`(answer: AMQPConfirmation) {
        var settlement = settlement(.retry(after: .seconds(1), .test))
        settlement.record([answer])
        #expect(settlement.next.published == ["retry.5s"])
    }

    @Test(arguments: [(0, "5s"), (29, "5s"), (30, "30s"), (600, "2m"), (100_000, "15m")])
    func `what reaches no queue makes way for others, for about as long as the message is old`(
        age: Int64, level: String
    ) throws {
        var settlement = settlement(.done, outbound: [.notification("a"), .notification("b")], attempt: 4, patience: 2)
        let noRoute = AMQPConfirmation.returned(code: 312, text: "NO_ROUTE")
        settlement.record([.confirmed, noRoute])
        #expect(settlement.next.published == ["notifications"])
        settlement.record([noRoute], now: Timestamp(milliseconds: 5 + age * 1000))
        guard case .move(let copy) = settlement.next else {
            Issue.record("nothing is published")
            return
        }
        #expect(copy.exchange == "retry.\(level)")
        #expect(copy.text == "{}")
        #expect(copy.properties.headers[HeaderName.attempt]?.int == 4)
        #expect(settlement.conclusion.reason?.code == "outbound-unroutable")
    }

    /// An operator may have written the headers of what comes back; no number in one ends a process.
    @Test(arguments: [(Int64.min, "15m"), (Int64.max, "5s")])
    func `a message of no age that can be makes way too`(firstSeen: Int64, level: String) {
        var settlement = settlement(.done, outbound: [.notification("a")], patience: 1, firstSeen: firstSeen)
        settlement.record([.returned(code: 312, text: "NO_ROUTE")], now: Timestamp(milliseconds: 1_767_225_600_000))
        guard case .move(let copy) = settlement.next else {
            Issue.record("nothing is published")
            return
        }
        #expect(copy.exchange == "retry.\(level)")
    }

    @Test(arguments: [AMQPConfirmation.nacked, .returned(code: 404, text: "NOT_FOUND")])
    func `what is everyone's trouble is waited out`(answer: AMQPConfirmation) {
        var settlement = settlement(.done, outbound: [.notification("a")], patience: 1)
        for _ in 1...5 { settlement.record([answer]) }
        #expect(settlement.next.published == ["notifications"])
    }

    @Test func `an outbound that can never be published dead-letters its cause`() {
        var settlement = settlement(.done, outbound: [.notification("a")])
        settlement.record([.returned(code: 502, text: "routing key too long")])
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.conclusion.reason?.code == "outbound-refused")
    }

    @Test func `an outbound that the broker refuses for its size dead-letters its cause`() {
        var settlement = settlement(.done, outbound: [.notification("a")])
        settlement.record([.returned(code: 406, text: "PRECONDITION_FAILED - message size 9 is larger")])
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.conclusion.reason?.code == "outbound-refused")
    }

    @Test(arguments: [501, 502])
    func `a copy whose headers cannot be published is made without them, and after that the broker moves it`(code: Int)
    {
        var settlement = settlement(.deadLetter(.test), headers: ["theirs": "long"])
        settlement.record([.returned(code: code, text: "headers too long")])
        guard case .move(let copy) = settlement.next else {
            Issue.record("there is no copy")
            return
        }
        #expect(copy.exchange == "dead" && copy.properties.headers["theirs"] == nil)
        #expect(copy.properties.headers[HeaderName.reason]?.text == "test-reason")
        #expect(copy.body == Array("{}".utf8))
        settlement.record([.returned(code: code, text: "still too long")])
        #expect(settlement.next.isReject && settlement.isRejected)
        #expect(settlement.conclusion.reason?.code == "rejected")
    }

    @Test func `a retry whose copy cannot be published ends as a dead letter`() {
        var settlement = settlement(.retry(after: .seconds(1), .test), headers: ["theirs": "long"])
        settlement.record([.returned(code: 501, text: "headers too long")])
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.conclusion.reason?.code == "copy-refused")
    }

    @Test func `a copy that the broker refuses for its size is moved by the broker, body and all`() {
        var settlement = settlement(.deadLetter(.test))
        settlement.record([.returned(code: 406, text: "PRECONDITION_FAILED - message size 9 is larger")])
        #expect(settlement.next.isReject)
        #expect(settlement.conclusion.reason?.detail.contains("test-reason") == true)
    }

    @Test func `a retry waits in the shortest level that is long enough`() {
        for (delay, level) in [(1, "5s"), (5, "5s"), (6, "30s"), (600, "15m"), (100_000, "6h")] {
            #expect(settlement(.retry(after: .seconds(delay), .test)).next.published == ["retry.\(level)"])
        }
    }

    @Test func `after the last attempt a retry is a dead letter that names the last reason`() {
        let settlement = settlement(.retry(after: .seconds(1), .test), attempt: 8)
        #expect(settlement.next.published == ["dead"])
        #expect(settlement.conclusion.reason?.code == "attempts-exhausted")
        #expect(settlement.conclusion.reason?.detail.contains("test-reason") == true)
    }

    @Test func `what is postponed waits without an attempt, and is never exhausted by it`() {
        let settlement = settlement(.postpone(after: .seconds(10), .test), attempt: 8)
        guard case .move(let message) = settlement.next else {
            Issue.record("not published")
            return
        }
        #expect(message.exchange == "retry.30s")
        #expect(message.properties.headers[HeaderName.attempt] == 8)
    }

    @Test func `a message whose handler fails goes through the levels in order`() {
        let conclusions = (1...8).map { Conclusion(failure: "boom", attempt: $0, maximumAttempts: 8) }
        let levels = conclusions.compactMap { if case .retry(let level, _) = $0 { level.rawValue } else { nil } }
        #expect(levels == ["5s", "30s", "2m", "15m", "1h", "6h", "6h"])
        #expect(conclusions.last == .deadLetter(Reason(code: "handler-failed", detail: "boom")))
    }

    @Test func `a wait after failures never exceeds its ceiling, and the ceiling never the cap`() {
        let backoff = Backoff()
        let ceilings = (1...7).map { backoff.ceiling(afterFailures: $0) }
        #expect(ceilings == [200, 400, 800, 1600, 3200, 5000, 5000].map { .milliseconds($0) })
        for failures in [-1, 0, 1, 5, 1000, .max] {
            let ceiling = backoff.ceiling(afterFailures: failures)
            #expect((0..<100).allSatisfy { _ in (.zero...ceiling).contains(backoff.delay(afterFailures: failures)) })
        }
    }
}

extension Settlement.Step {
    fileprivate var published: [String] {
        switch self {
        case .publish(let messages): messages.map(\.exchange.name)
        case .move(let copy): [copy.exchange]
        case .acknowledge, .reject: []
        }
    }
    fileprivate var isReject: Bool { if case .reject = self { true } else { false } }
    fileprivate var isAcknowledge: Bool { if case .acknowledge = self { true } else { false } }
}
