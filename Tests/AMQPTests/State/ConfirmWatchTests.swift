import Testing

@testable import AMQP

@Suite struct ConfirmWatchTests {
    private let start = ContinuousClock.now
    private let limits = ConfirmWatch.Limits(
        unconfirmed: .seconds(30), nacked: .seconds(5), maximum: .seconds(100))

    private static func message(_ key: String = "k") -> AMQPMessage {
        AMQPMessage(exchange: "e", routingKey: key, properties: AMQPProperties(), body: [])
    }

    private func reason(_ watch: inout ConfirmWatch, after seconds: Int, oldest: Int? = nil) -> String? {
        watch.reasonToReopen(oldest: oldest.map { start + .seconds($0) }, now: start + .seconds(seconds))
    }

    @Test func `a message without a confirm for the limit needs a new channel`() {
        var watch = ConfirmWatch(limits)
        #expect(reason(&watch, after: 29, oldest: 0) == nil)
        #expect(reason(&watch, after: 1000) == nil)
        #expect(reason(&watch, after: 30, oldest: 0) == "no confirm within 30.0 seconds")
    }

    @Test func `the limit doubles up to its maximum until a confirm`() {
        var watch = ConfirmWatch(limits)
        var intervals: [Int] = []
        for _ in 0..<4 {
            let interval = (1...1000).first { reason(&watch, after: $0, oldest: 0) != nil }
            intervals.append(interval ?? 0)
            watch.channelClosed()
        }
        #expect(intervals == [30, 60, 100, 100])
        watch.confirmed(Self.message())
        #expect(reason(&watch, after: 30, oldest: 0) != nil)
    }

    /// The seconds from the first nack to the reason, with a nack each second.
    private func secondsOfNacks(_ watch: inout ConfirmWatch, from first: Int) -> Int? {
        (0...1000).first { second in
            watch.nacked(Self.message(), now: start + .seconds(first + second))
            return reason(&watch, after: first + second) != nil
        }
    }

    @Test func `a destination that is only nacked needs a new channel, with growing intervals`() {
        var watch = ConfirmWatch(limits)
        var intervals: [Int?] = []
        for round in 0..<3 {
            intervals.append(secondsOfNacks(&watch, from: round * 500))
            watch.channelClosed()
            #expect(reason(&watch, after: round * 500 + 400) == nil)
        }
        #expect(intervals == [5, 10, 20])
        watch.confirmed(Self.message())
        #expect(secondsOfNacks(&watch, from: 2000) == 5)
    }

    @Test func `confirms of the destination end a streak, those of others do not`() {
        var watch = ConfirmWatch(limits)
        watch.nacked(Self.message("a"), now: start)
        watch.nacked(Self.message("b"), now: start)
        watch.confirmed(Self.message("a"))
        watch.nacked(Self.message("a"), now: start + .seconds(10))
        #expect(reason(&watch, after: 10) == nil)
        watch.nacked(Self.message("b"), now: start + .seconds(10))
        #expect(reason(&watch, after: 10)?.hasSuffix("with the routing key b") == true)
    }

    @Test func `nacks far apart are no streak`() {
        var watch = ConfirmWatch(limits)
        for minute in 0..<5 { watch.nacked(Self.message(), now: start + .seconds(minute * 61)) }
        #expect(reason(&watch, after: 300) == nil)
    }
}
