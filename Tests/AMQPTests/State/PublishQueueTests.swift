import Synchronization
import Testing
import TestSupport

@testable import AMQP

/// Publishing without a broker: the tests give the broker's answers.
@Suite struct PublishQueueTests {
    private let now = ContinuousClock.now
    private let publishClose = Frame.Close(
        code: 404, text: "NOT_FOUND - no exchange 'gone'", cause: Frame.Close.publish)

    private static func message(_ id: String?, exchange: String = "e", key: String = "k") -> AMQPMessage {
        AMQPMessage(exchange: exchange, routingKey: key, properties: AMQPProperties(messageID: id), body: [])
    }

    /// A job with an observable result.
    private final class Answer: Sendable {
        let result = Mutex<Result<[AMQPConfirmation], AMQPError>?>(nil)

        var confirmations: [AMQPConfirmation]? { result.withLock { try? $0?.get() } }
    }

    private func job(_ messages: AMQPMessage...) -> (PublishJob, Answer) {
        let answer = Answer()
        return (PublishJob(messages) { result in answer.result.withLock { $0 = result } }, answer)
    }

    private func publishQueue(_ limits: AMQPPublishWindow = .init()) -> PublishQueue {
        PublishQueue(limits: limits, idPrefix: "t")
    }

    /// Publishes all messages that may be sent now, and returns their ids.
    private func publish(_ publishQueue: inout PublishQueue, now: ContinuousClock.Instant? = nil) -> [String] {
        var sent: [String] = []
        while case .publish(let queued) = publishQueue.next(now: now ?? self.now) { sent.append(queued.messageID) }
        return sent
    }

    @Test func `messages above a refused size are returned unsent until the limit expires`()
        throws
    {
        var publishQueue = publishQueue()
        func sized(_ id: String, _ bytes: Int) -> AMQPMessage {
            var message = Self.message(id)
            message.body = [UInt8](repeating: 0, count: bytes)
            return message
        }
        let close = Frame.Close(
            code: 406, text: "PRECONDITION_FAILED - message size 30 is larger than configured max size 20",
            cause: Frame.Close.publish)
        let (first, answer) = job(sized("big", 30))
        publishQueue.add(first)
        #expect(publish(&publishQueue) == ["big"])
        publishQueue.channelLost(close, now: now)
        #expect(answer.confirmations == [.returned(code: 406, text: close.text)])
        let (second, later) = job(sized("small", 20), sized("bigger", 40))
        publishQueue.add(second)
        #expect(publish(&publishQueue) == ["small"])
        try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
        #expect(later.confirmations == [.confirmed, .returned(code: 406, text: close.text)])
        // The limit may have been raised: after a while one message is tried alone.
        let (third, _) = job(sized("small again", 1), sized("big again", 30), sized("after", 1))
        publishQueue.add(third)
        #expect(publish(&publishQueue, now: now + PublishQueue.sizeLimitLifetime) == ["small again"])
        try publishQueue.settle(2, multiple: false, as: .confirmed, now: now)
        #expect(publish(&publishQueue, now: now + PublishQueue.sizeLimitLifetime) == ["big again"])
    }

    @Test(
        arguments: [
            ("PRECONDITION_FAILED - message size 30 is larger than configured max size 20", 20),
            ("PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216", 16_777_216),
            ("PRECONDITION_FAILED - user_id property set to 'size'", nil),
            ("message size", nil), ("", nil),
        ] as [(String, Int?)])
    func `the size limit is read from the broker's words`(text: String, limit: Int?) {
        #expect(PublishQueue.sizeLimit(in: text) == limit)
    }

    @Test func `messages are sent in order and confirmed`() throws {
        var publishQueue = publishQueue()
        let (job, answer) = job(Self.message("1"), Self.message("2"), Self.message("3"))
        publishQueue.add(job)
        #expect(publish(&publishQueue) == ["1", "2", "3"])
        try publishQueue.settle(2, multiple: true, as: .confirmed, now: now)
        #expect(answer.confirmations == nil)
        try publishQueue.settle(3, multiple: false, as: .nacked, now: now)
        #expect(answer.confirmations == [.confirmed, .confirmed, .nacked])
        #expect(publishQueue.isEmpty)
    }

    @Test func `a full window waits for confirms`() throws {
        var publishQueue = publishQueue(.init(messages: 2, bytes: 1_000_000))
        publishQueue.add(job(Self.message("1"), Self.message("2"), Self.message("3")).0)
        #expect(publish(&publishQueue) == ["1", "2"])
        try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
        #expect(publish(&publishQueue) == ["3"])
    }

    @Test func `a return is matched by id, exchange and key, and the following confirm does not replace it`() throws {
        var publishQueue = publishQueue()
        let (job, answer) = job(Self.message("1", key: "a"), Self.message("1", key: "b"), Self.message(nil, key: "c"))
        publishQueue.add(job)
        let ids = publish(&publishQueue)
        #expect(ids == ["1", "1", "t-1"])
        func returned(_ id: String, _ key: String) -> Bool {
            publishQueue.returned(.init(code: 312, text: "NO_ROUTE", exchange: "e", routingKey: key), messageID: id)
        }
        #expect(returned("1", "b"))
        #expect(returned("t-1", "c"))
        #expect(!returned("1", "z"))
        try publishQueue.settle(3, multiple: true, as: .confirmed, now: now)
        let gone = AMQPConfirmation.returned(code: 312, text: "NO_ROUTE")
        #expect(answer.confirmations == [.confirmed, gone, gone])
    }

    @Test func `two messages with the same return key are never unconfirmed together`() throws {
        var publishQueue = publishQueue()
        let (job, answer) = job(Self.message("1"), Self.message("1"), Self.message("2"))
        publishQueue.add(job)
        #expect(publish(&publishQueue) == ["1"])
        try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
        #expect(publish(&publishQueue) == ["1", "2"])
        #expect(
            publishQueue.returned(.init(code: 312, text: "", exchange: "e", routingKey: "k"), messageID: "1") == true)
        try publishQueue.settle(3, multiple: true, as: .confirmed, now: now)
        #expect(answer.confirmations == [.confirmed, .returned(code: 312, text: ""), .confirmed])
    }

    @Test func `unconfirmed messages are sent again first, in order`() throws {
        var publishQueue = publishQueue(.init(messages: 3, bytes: 1_000_000))
        let (job, answer) = job(Self.message("1"), Self.message("2"), Self.message(nil), Self.message("4"))
        publishQueue.add(job)
        #expect(publish(&publishQueue) == ["1", "2", "t-1"])
        try publishQueue.settle(2, multiple: false, as: .confirmed, now: now)
        publishQueue.channelLost(nil, now: now)
        #expect(publish(&publishQueue) == ["1", "t-1", "4"])
        try publishQueue.settle(3, multiple: true, as: .confirmed, now: now)
        #expect(answer.confirmations == Array(repeating: .confirmed, count: 4))
    }

    @Test func `the message that closes the channel is isolated by sending one at a time`() throws {
        var publishQueue = publishQueue()
        let (job, answer) = job(
            Self.message("1"), Self.message("bad", exchange: "gone"), Self.message("3"), Self.message("4"))
        publishQueue.add(job)
        #expect(publish(&publishQueue).count == 4)
        publishQueue.channelLost(publishClose, now: now)
        #expect(publish(&publishQueue) == ["1"])
        try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
        #expect(publish(&publishQueue) == ["bad"])
        publishQueue.channelLost(publishClose, now: now)
        #expect(publish(&publishQueue) == ["3"])
        try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
        #expect(publish(&publishQueue) == ["4"])
        try publishQueue.settle(2, multiple: false, as: .confirmed, now: now)
        #expect(
            answer.confirmations == [
                .confirmed, .returned(code: 404, text: publishClose.text), .confirmed, .confirmed,
            ])
        publishQueue.add(self.job(Self.message("5"), Self.message("6")).0)
        #expect(publish(&publishQueue) == ["5", "6"])
    }

    @Test func `messages to a missing exchange are returned unsent until it exists`() throws {
        var publishQueue = publishQueue()
        publishQueue.add(job(Self.message("1", exchange: "gone")).0)
        #expect(publish(&publishQueue) == ["1"])
        publishQueue.channelLost(publishClose, now: now)
        let (second, answer) = job(Self.message("2", exchange: "gone"), Self.message("3"))
        publishQueue.add(second)
        #expect(publish(&publishQueue) == ["3"])
        try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
        #expect(answer.confirmations == [.returned(code: 404, text: publishClose.text), .confirmed])

        let later = now + PublishQueue.missingInterval
        publishQueue.add(job(Self.message("4", exchange: "gone")).0)
        guard case .verify(exchange: "gone") = publishQueue.next(now: later) else {
            Issue.record("the exchange was not asked for")
            return
        }
        publishQueue.verified("gone", exists: true, now: later)
        #expect(publish(&publishQueue, now: later) == ["4"])
    }

    @Test func `a forbidden exchange is tried by single messages with growing intervals`() throws {
        let refusal = Frame.Close(code: 403, text: "ACCESS_REFUSED", cause: Frame.Close.publish)
        let answered = AMQPConfirmation.returned(code: 403, text: refusal.text)
        var publishQueue = publishQueue()
        var time = now
        for pause in [1, 2, 4, 8, 16, 30, 30] {
            publishQueue.add(job(Self.message("try", exchange: "closed"), Self.message("good")).0)
            #expect(publish(&publishQueue, now: time) == (pause == 1 ? ["try", "good"] : ["try"]))
            publishQueue.channelLost(refusal, now: time)
            if pause == 1 {
                #expect(publish(&publishQueue, now: time) == ["try"])
                publishQueue.channelLost(refusal, now: time)
            }
            #expect(publish(&publishQueue, now: time) == ["good"])
            try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
            time += .seconds(pause)
            let (early, answer) = job(Self.message("early", exchange: "closed"))
            publishQueue.add(early)
            #expect(publish(&publishQueue, now: time - .milliseconds(1)) == [])
            #expect(answer.confirmations == [answered])
        }
        let (trial, answer) = job(Self.message("try", exchange: "closed"), Self.message("next", exchange: "closed"))
        publishQueue.add(trial)
        #expect(publish(&publishQueue, now: time) == ["try"])
        try publishQueue.settle(2, multiple: false, as: .confirmed, now: now)
        #expect(publish(&publishQueue, now: time) == ["next"])
        try publishQueue.settle(3, multiple: false, as: .confirmed, now: now)
        #expect(answer.confirmations == [.confirmed, .confirmed])
        #expect(publishQueue.isEmpty)
    }

    @Test func `a channel closed for another reason isolates no message`() {
        var publishQueue = publishQueue()
        publishQueue.add(job(Self.message("1")).0)
        #expect(publish(&publishQueue) == ["1"])
        publishQueue.channelLost(Frame.Close(code: 320, text: "CONNECTION_FORCED", cause: 0), now: now)
        #expect(publish(&publishQueue) == ["1"])
    }

    @Test func `a cancelled job is not sent and its confirms are ignored`() throws {
        var publishQueue = publishQueue(.init(messages: 1, bytes: 1_000_000))
        let (abandoned, _) = job(Self.message("1"), Self.message("2"))
        publishQueue.add(abandoned)
        #expect(publish(&publishQueue) == ["1"])
        abandoned.fail(AMQPError(.cancelled, operation: "", detail: ""))
        try publishQueue.settle(1, multiple: false, as: .confirmed, now: now)
        #expect(publish(&publishQueue) == [])
        #expect(publishQueue.isEmpty)
    }

    @Test func `failing the queue ends every job`() {
        var publishQueue = publishQueue(.init(messages: 1, bytes: 1_000_000))
        let (first, one) = job(Self.message("1"))
        let (second, two) = job(Self.message("2"))
        publishQueue.add(first)
        publishQueue.add(second)
        _ = publish(&publishQueue)
        publishQueue.fail(AMQPError(.closed, operation: "", detail: ""))
        #expect(one.result.withLock { $0 } != nil)
        #expect(two.result.withLock { $0 } != nil)
    }

    @Test(arguments: 0..<30) func `every message is answered under random broker behaviour`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var publishQueue = publishQueue(.init(messages: 8, bytes: 1_000_000))
        var jobs: [Answer] = []
        for number in 0..<40 {
            // Few ids, so that some collide; some exchanges are missing.
            let messages = (0..<5).map { index in
                Self.message(
                    "\((number * 5 + index) % 11)", exchange: index == 3 && number % 4 == 0 ? "gone" : "e")
            }
            let answer = Answer()
            publishQueue.add(PublishJob(messages) { result in answer.result.withLock { $0 = result } })
            jobs.append(answer)
        }
        var sequence: UInt64 = 0
        var underWay: [PublishQueue.QueuedMessage] = []
        for _ in 0..<10_000 where !publishQueue.isEmpty {
            switch publishQueue.next(now: now) {
            case .publish(let queued):
                sequence += 1
                underWay.append(queued)
                if queued.message.exchange == "gone" || Int.random(in: 0..<20, using: &random) == 0 {
                    let isRefused = queued.message.exchange == "gone"
                    publishQueue.channelLost(isRefused ? publishClose : nil, now: now)
                    sequence = 0
                    underWay = []
                }
            case .verify(let exchange): publishQueue.verified(exchange, exists: false, now: now)
            case .wait:
                if sequence > 0 { try publishQueue.settle(sequence, multiple: true, as: .confirmed, now: now) }
            }
        }
        #expect(publishQueue.isEmpty)
        for job in jobs { #expect(job.confirmations?.count == 5) }
    }
}
