import Synchronization
import Testing

@testable import AMQP
import TestSupport

/// The publishing side without a broker: the tests play the broker.
@Suite struct OutboxTests {
    private let now = ContinuousClock.now
    private let publishClose = Frame.Close(
        code: 404, text: "NOT_FOUND - no exchange 'gone'", cause: Frame.Close.publish)

    private static func message(_ id: String?, exchange: String = "e", key: String = "k") -> AMQPMessage {
        AMQPMessage(exchange: exchange, routingKey: key, properties: AMQPProperties(messageID: id), body: [])
    }

    /// A job whose answer can be looked at.
    private final class Answer: Sendable {
        let result = Mutex<Result<[AMQPConfirmation], AMQPError>?>(nil)

        var confirmations: [AMQPConfirmation]? { result.withLock { try? $0?.get() } }
    }

    private func job(_ messages: AMQPMessage...) -> (PublishJob, Answer) {
        let answer = Answer()
        return (PublishJob(messages) { result in answer.result.withLock { $0 = result } }, answer)
    }

    private func outbox(_ limits: AMQPPublishWindow = .init()) -> Outbox { Outbox(limits: limits, idPrefix: "t") }

    /// Publishes whatever may go now, and says which message ids went.
    private func publish(_ outbox: inout Outbox, now: ContinuousClock.Instant? = nil) -> [String] {
        var sent: [String] = []
        while case .publish(let entry) = outbox.next(now: now ?? self.now) { sent.append(entry.messageID) }
        return sent
    }

    @Test func `a size that the broker refused is refused without a try for a while, and costs others no channel`()
        throws
    {
        var outbox = outbox()
        func sized(_ id: String, _ bytes: Int) -> AMQPMessage {
            var message = Self.message(id)
            message.body = [UInt8](repeating: 0, count: bytes)
            return message
        }
        let close = Frame.Close(
            code: 406, text: "PRECONDITION_FAILED - message size 30 is larger than configured max size 20",
            cause: Frame.Close.publish)
        let (first, answer) = job(sized("big", 30))
        outbox.add(first)
        #expect(publish(&outbox) == ["big"])
        outbox.channelLost(close, now: now)
        #expect(answer.confirmations == [.returned(code: 406, text: close.text)])
        let (second, later) = job(sized("small", 20), sized("bigger", 40))
        outbox.add(second)
        #expect(publish(&outbox) == ["small"])
        try outbox.settle(1, multiple: false, as: .confirmed)
        #expect(later.confirmations == [.confirmed, .returned(code: 406, text: close.text)])
        // The limit may have been raised: after a while one is tried, alone.
        let (third, _) = job(sized("small again", 1), sized("big again", 30), sized("after", 1))
        outbox.add(third)
        #expect(publish(&outbox, now: now + Outbox.sizeLimitMemory) == ["small again"])
        try outbox.settle(2, multiple: false, as: .confirmed)
        #expect(publish(&outbox, now: now + Outbox.sizeLimitMemory) == ["big again"])
    }

    @Test(
        arguments: [
            ("PRECONDITION_FAILED - message size 30 is larger than configured max size 20", 20),
            ("PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216", 16_777_216),
            ("PRECONDITION_FAILED - user_id property set to 'size'", nil),
            ("message size", nil), ("", nil),
        ] as [(String, Int?)])
    func `the size limit is read from the broker's words`(text: String, limit: Int?) {
        #expect(Outbox.sizeLimit(in: text) == limit)
    }

    @Test func `messages go in order and come back confirmed`() throws {
        var outbox = outbox()
        let (job, answer) = job(Self.message("1"), Self.message("2"), Self.message("3"))
        outbox.add(job)
        #expect(publish(&outbox) == ["1", "2", "3"])
        try outbox.settle(2, multiple: true, as: .confirmed)
        #expect(answer.confirmations == nil)
        try outbox.settle(3, multiple: false, as: .nacked)
        #expect(answer.confirmations == [.confirmed, .confirmed, .nacked])
        #expect(outbox.isEmpty)
    }

    @Test func `a full window waits for confirms`() throws {
        var outbox = outbox(.init(messages: 2, bytes: 1_000_000))
        outbox.add(job(Self.message("1"), Self.message("2"), Self.message("3")).0)
        #expect(publish(&outbox) == ["1", "2"])
        try outbox.settle(1, multiple: false, as: .confirmed)
        #expect(publish(&outbox) == ["3"])
    }

    @Test func `a return is matched by id, exchange and key, and outlasts the confirm that follows it`() throws {
        var outbox = outbox()
        let (job, answer) = job(Self.message("1", key: "a"), Self.message("1", key: "b"), Self.message(nil, key: "c"))
        outbox.add(job)
        let ids = publish(&outbox)
        #expect(ids == ["1", "1", "t-1"])
        func returned(_ id: String, _ key: String) -> Bool {
            outbox.returned(.init(code: 312, text: "NO_ROUTE", exchange: "e", routingKey: key), messageID: id)
        }
        #expect(returned("1", "b"))
        #expect(returned("t-1", "c"))
        #expect(!returned("1", "z"))
        try outbox.settle(3, multiple: true, as: .confirmed)
        let gone = AMQPConfirmation.returned(code: 312, text: "NO_ROUTE")
        #expect(answer.confirmations == [.confirmed, gone, gone])
    }

    @Test func `two messages a return could not tell apart are never under way together`() throws {
        var outbox = outbox()
        let (job, answer) = job(Self.message("1"), Self.message("1"), Self.message("2"))
        outbox.add(job)
        #expect(publish(&outbox) == ["1"])
        try outbox.settle(1, multiple: false, as: .confirmed)
        #expect(publish(&outbox) == ["1", "2"])
        #expect(outbox.returned(.init(code: 312, text: "", exchange: "e", routingKey: "k"), messageID: "1") == true)
        try outbox.settle(3, multiple: true, as: .confirmed)
        #expect(answer.confirmations == [.confirmed, .returned(code: 312, text: ""), .confirmed])
    }

    @Test func `what is unconfirmed goes again, in order, before anything new`() throws {
        var outbox = outbox(.init(messages: 3, bytes: 1_000_000))
        let (job, answer) = job(Self.message("1"), Self.message("2"), Self.message(nil), Self.message("4"))
        outbox.add(job)
        #expect(publish(&outbox) == ["1", "2", "t-1"])
        try outbox.settle(2, multiple: false, as: .confirmed)
        outbox.channelLost(nil, now: now)
        #expect(publish(&outbox) == ["1", "t-1", "4"])
        try outbox.settle(3, multiple: true, as: .confirmed)
        #expect(answer.confirmations == Array(repeating: .confirmed, count: 4))
    }

    @Test func `the message that closes the channel is found by sending one at a time`() throws {
        var outbox = outbox()
        let (job, answer) = job(
            Self.message("1"), Self.message("bad", exchange: "gone"), Self.message("3"), Self.message("4"))
        outbox.add(job)
        #expect(publish(&outbox).count == 4)
        outbox.channelLost(publishClose, now: now)
        #expect(publish(&outbox) == ["1"])
        try outbox.settle(1, multiple: false, as: .confirmed)
        #expect(publish(&outbox) == ["bad"])
        outbox.channelLost(publishClose, now: now)
        #expect(publish(&outbox) == ["3"])
        try outbox.settle(1, multiple: false, as: .confirmed)
        #expect(publish(&outbox) == ["4"])
        try outbox.settle(2, multiple: false, as: .confirmed)
        #expect(
            answer.confirmations == [
                .confirmed, .returned(code: 404, text: publishClose.text), .confirmed, .confirmed,
            ])
        outbox.add(self.job(Self.message("5"), Self.message("6")).0)
        #expect(publish(&outbox) == ["5", "6"])
    }

    @Test func `messages to an exchange found missing are answered without a try, until it is back`() throws {
        var outbox = outbox()
        outbox.add(job(Self.message("1", exchange: "gone")).0)
        #expect(publish(&outbox) == ["1"])
        outbox.channelLost(publishClose, now: now)
        let (second, answer) = job(Self.message("2", exchange: "gone"), Self.message("3"))
        outbox.add(second)
        #expect(publish(&outbox) == ["3"])
        try outbox.settle(1, multiple: false, as: .confirmed)
        #expect(answer.confirmations == [.returned(code: 404, text: publishClose.text), .confirmed])

        let later = now + Outbox.missingInterval
        outbox.add(job(Self.message("4", exchange: "gone")).0)
        guard case .verify(exchange: "gone") = outbox.next(now: later) else {
            Issue.record("the exchange was not asked for")
            return
        }
        outbox.verified("gone", exists: true, now: later)
        #expect(publish(&outbox, now: later) == ["4"])
    }

    @Test func `an exchange that refuses us is tried by one message alone, ever less often`() throws {
        let refusal = Frame.Close(code: 403, text: "ACCESS_REFUSED", cause: Frame.Close.publish)
        let answered = AMQPConfirmation.returned(code: 403, text: refusal.text)
        var outbox = outbox()
        var time = now
        for pause in [1, 2, 4, 8, 16, 30, 30] {
            outbox.add(job(Self.message("try", exchange: "closed"), Self.message("good")).0)
            #expect(publish(&outbox, now: time) == (pause == 1 ? ["try", "good"] : ["try"]))
            outbox.channelLost(refusal, now: time)
            if pause == 1 {
                #expect(publish(&outbox, now: time) == ["try"])
                outbox.channelLost(refusal, now: time)
            }
            #expect(publish(&outbox, now: time) == ["good"])
            try outbox.settle(1, multiple: false, as: .confirmed)
            time += .seconds(pause)
            let (early, answer) = job(Self.message("early", exchange: "closed"))
            outbox.add(early)
            #expect(publish(&outbox, now: time - .milliseconds(1)) == [])
            #expect(answer.confirmations == [answered])
        }
        let (trial, answer) = job(Self.message("try", exchange: "closed"), Self.message("next", exchange: "closed"))
        outbox.add(trial)
        #expect(publish(&outbox, now: time) == ["try"])
        try outbox.settle(2, multiple: false, as: .confirmed)
        #expect(publish(&outbox, now: time) == ["next"])
        try outbox.settle(3, multiple: false, as: .confirmed)
        #expect(answer.confirmations == [.confirmed, .confirmed])
        #expect(outbox.isEmpty)
    }

    @Test func `a channel closed for another reason accuses nobody`() {
        var outbox = outbox()
        outbox.add(job(Self.message("1")).0)
        #expect(publish(&outbox) == ["1"])
        outbox.channelLost(Frame.Close(code: 320, text: "CONNECTION_FORCED", cause: 0), now: now)
        #expect(publish(&outbox) == ["1"])
    }

    @Test func `an abandoned job is not sent any more, and its confirms are let go`() throws {
        var outbox = outbox(.init(messages: 1, bytes: 1_000_000))
        let (abandoned, _) = job(Self.message("1"), Self.message("2"))
        outbox.add(abandoned)
        #expect(publish(&outbox) == ["1"])
        abandoned.fail(AMQPError(.cancelled, operation: "", detail: ""))
        try outbox.settle(1, multiple: false, as: .confirmed)
        #expect(publish(&outbox) == [])
        #expect(outbox.isEmpty)
    }

    @Test func `failing everything leaves nobody waiting`() {
        var outbox = outbox(.init(messages: 1, bytes: 1_000_000))
        let (first, one) = job(Self.message("1"))
        let (second, two) = job(Self.message("2"))
        outbox.add(first)
        outbox.add(second)
        _ = publish(&outbox)
        outbox.fail(AMQPError(.closed, operation: "", detail: ""))
        #expect(one.result.withLock { $0 } != nil)
        #expect(two.result.withLock { $0 } != nil)
    }

    @Test(arguments: 0..<30) func `whatever the broker does, every message is answered`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var outbox = outbox(.init(messages: 8, bytes: 1_000_000))
        var jobs: [Answer] = []
        for number in 0..<40 {
            // Few ids, so that some collide; some exchanges are gone.
            let messages = (0..<5).map { index in
                Self.message(
                    "\((number * 5 + index) % 11)", exchange: index == 3 && number % 4 == 0 ? "gone" : "e")
            }
            let answer = Answer()
            outbox.add(PublishJob(messages) { result in answer.result.withLock { $0 = result } })
            jobs.append(answer)
        }
        var sequence: UInt64 = 0
        var underWay: [Outbox.Entry] = []
        for _ in 0..<10_000 where !outbox.isEmpty {
            switch outbox.next(now: now) {
            case .publish(let entry):
                sequence += 1
                underWay.append(entry)
                if entry.message.exchange == "gone" || Int.random(in: 0..<20, using: &random) == 0 {
                    let isRefused = entry.message.exchange == "gone"
                    outbox.channelLost(isRefused ? publishClose : nil, now: now)
                    sequence = 0
                    underWay = []
                }
            case .verify(let exchange): outbox.verified(exchange, exists: false, now: now)
            case .wait:
                if sequence > 0 { try outbox.settle(sequence, multiple: true, as: .confirmed) }
            }
        }
        #expect(outbox.isEmpty)
        for job in jobs { #expect(job.confirmations?.count == 5) }
    }
}
