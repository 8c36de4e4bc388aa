@testable import HTTP2
import NIOCore
import Testing

/// What becomes of a request whose stream ended: the table of RFC 9113 §8.7 and of the providers.
struct DecisionTests {
    private let notice = HTTP2GoAwayNotice(lastStream: 5, code: .noError, debugText: "")
    private let lost = HTTP2Failure(.connectionLost, "gone")

    private func resolve(
        _ end: StreamEnd, stream: Int32 = 7, answered: Bool = false, written: Bool = true, mayResend: Bool = true
    ) -> CallResolution {
        CallResolution(end, stream: stream, answered: answered, written: written, mayResend: mayResend)
    }

    @Test func `an answer is an answer however the stream ended`() {
        for end in [StreamEnd.closed(.noError, goAway: nil), .closed(.cancel, goAway: notice), .connectionLost(lost)] {
            #expect(resolve(end, answered: true) == .answered)
        }
    }

    @Test func `refused, disowned or never sent is sent again while it may be`() {
        for end in [StreamEnd.closed(.refusedStream, goAway: nil), .closed(.refusedStream, goAway: notice), .neverSent]
        {
            #expect(resolve(end) == .resend)
            guard case .fail(.notProcessed) = resolve(end, mayResend: false) else { Issue.record("\(end)"); continue }
        }
    }

    @Test func `a lost connection is harmless only before END_STREAM`() {
        #expect(resolve(.connectionLost(lost), written: false) == .resend)
        #expect(resolve(.connectionLost(lost), written: true) == .fail(.ambiguous(lost)))
        #expect(resolve(.connectionLost(lost), written: false, mayResend: false) == .fail(.notProcessed(lost)))
    }

    @Test func `no other reset is ever resent`() {
        for code in (0...20).map({ HTTP2ErrorCode(rawValue: $0) }) where code != .refusedStream {
            guard case .fail(.ambiguous) = resolve(.closed(code, goAway: nil)) else {
                Issue.record("\(code)"); continue
            }
            guard case .fail(.notProcessed) = resolve(.closed(code, goAway: nil), written: false) else {
                Issue.record("\(code)")
                continue
            }
        }
    }

    @Test func `the reason tells a GOAWAY from a refusal`() {
        guard
            case .fail(.notProcessed(let disowned)) = resolve(.closed(.refusedStream, goAway: notice), mayResend: false),
            case .fail(.notProcessed(let refused)) = resolve(
                .closed(.refusedStream, goAway: notice), stream: 5, mayResend: false)
        else { Issue.record("not failed"); return }
        #expect(disowned.code == .goAway)
        #expect(refused.code == .refused)
    }

    // MARK: Time

    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    @Test func `equal deadlines need one timer`() {
        var schedule = DeadlineSchedule()
        #expect(schedule.added(start + .seconds(10)) == start + .seconds(10))
        for second in 1...9 { #expect(schedule.added(start + .seconds(10 + Int64(second))) == nil) }
        #expect(schedule.added(start + .seconds(2)) == start + .seconds(2))
        #expect(schedule.fired(now: start + .seconds(2), earliest: start + .seconds(10)) == start + .seconds(10))
        #expect(schedule.fired(now: start + .seconds(10), earliest: nil) == nil)
        #expect(schedule.added(start + .seconds(30)) == start + .seconds(30))
    }

    @Test func `a connection that answered one PING is asked again after the usual silence`() {
        var liveness = Liveness(pingAfter: .seconds(1), pingTimeout: .seconds(60), now: start)
        #expect(liveness.check(now: start + .seconds(1)) == .ping(thenCheckAt: start + .seconds(2)))
        liveness.wake(now: start + .seconds(1))
        #expect(liveness.check(now: start + .seconds(2)) == .ping(thenCheckAt: start + .seconds(3)))
        #expect(liveness.check(now: start + .seconds(3)) == .check(at: start + .seconds(4)))
    }

    @Test func `silence leads to a PING and then to the end, a sign of life back to the start`() {
        var liveness = Liveness(pingAfter: .seconds(10), pingTimeout: .seconds(5), now: start)
        #expect(liveness.check(now: start + .seconds(9)) == .check(at: start + .seconds(10)))
        #expect(liveness.check(now: start + .seconds(10)) == .ping(thenCheckAt: start + .seconds(15)))
        #expect(liveness.check(now: start + .seconds(14)) == .check(at: start + .seconds(15)))
        liveness.wake(now: start + .seconds(14))
        #expect(liveness.check(now: start + .seconds(15)) == .check(at: start + .seconds(24)))
        #expect(liveness.check(now: start + .seconds(24)) == .ping(thenCheckAt: start + .seconds(29)))
        #expect(liveness.check(now: start + .seconds(29)) == .giveUp)
    }
}
