import NIOCore
import Testing

@testable import HTTP2

/// The resolution of requests whose streams ended (RFC 9113 §8.7), deadlines and keep-alive.
struct RequestResolutionTests {
    private let notice = HTTP2GoAwayNotice(lastStream: 5, code: .noError, debugText: "")
    private let lost = HTTP2Failure(.connectionLost, "gone")

    private func resolve(
        _ end: StreamEnd, stream: Int32 = 7, answered: Bool = false, written: Bool = true, mayResend: Bool = true
    ) -> RequestResolution {
        RequestResolution(end, stream: stream, answered: answered, written: written, mayResend: mayResend)
    }

    @Test func `a complete response counts however the stream ended`() {
        for end in [StreamEnd.closed(.noError, goAway: nil), .closed(.cancel, goAway: notice), .connectionLost(lost)] {
            #expect(resolve(end, answered: true) == .answered)
        }
    }

    @Test func `requests refused, above a GOAWAY or never sent are resent while resends are left`() {
        for end in [StreamEnd.closed(.refusedStream, goAway: nil), .closed(.refusedStream, goAway: notice), .neverSent]
        {
            #expect(resolve(end) == .resend)
            guard case .fail(.notProcessed) = resolve(end, mayResend: false) else { Issue.record("\(end)"); continue }
        }
    }

    @Test func `a lost connection is safe to resend only before END_STREAM`() {
        #expect(resolve(.connectionLost(lost), written: false) == .resend)
        #expect(resolve(.connectionLost(lost), written: true) == .fail(.ambiguous(lost)))
        #expect(resolve(.connectionLost(lost), written: false, mayResend: false) == .fail(.notProcessed(lost)))
    }

    @Test func `no other RST_STREAM is resent`() {
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

    @Test func `the failure distinguishes GOAWAY from REFUSED_STREAM`() {
        guard
            case .fail(.notProcessed(let excluded)) = resolve(
                .closed(.refusedStream, goAway: notice), mayResend: false),
            case .fail(.notProcessed(let refused)) = resolve(
                .closed(.refusedStream, goAway: notice), stream: 5, mayResend: false)
        else { Issue.record("not failed"); return }
        #expect(excluded.code == .goAway)
        #expect(refused.code == .refused)
    }

    // MARK: Deadlines and keep-alive

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

    @Test func `after an answered PING the next one follows after the idle time`() {
        var keepAlive = KeepAlive(pingAfter: .seconds(1), pingTimeout: .seconds(60), now: start)
        #expect(keepAlive.check(now: start + .seconds(1)) == .ping(thenCheckAt: start + .seconds(2)))
        keepAlive.noteActivity(now: start + .seconds(1))
        #expect(keepAlive.check(now: start + .seconds(2)) == .ping(thenCheckAt: start + .seconds(3)))
        #expect(keepAlive.check(now: start + .seconds(3)) == .check(at: start + .seconds(4)))
    }

    @Test func `idle time leads to a PING and then to close; activity restarts the idle time`() {
        var keepAlive = KeepAlive(pingAfter: .seconds(10), pingTimeout: .seconds(5), now: start)
        #expect(keepAlive.check(now: start + .seconds(9)) == .check(at: start + .seconds(10)))
        #expect(keepAlive.check(now: start + .seconds(10)) == .ping(thenCheckAt: start + .seconds(15)))
        #expect(keepAlive.check(now: start + .seconds(14)) == .check(at: start + .seconds(15)))
        keepAlive.noteActivity(now: start + .seconds(14))
        #expect(keepAlive.check(now: start + .seconds(15)) == .check(at: start + .seconds(24)))
        #expect(keepAlive.check(now: start + .seconds(24)) == .ping(thenCheckAt: start + .seconds(29)))
        #expect(keepAlive.check(now: start + .seconds(29)) == .close)
    }
}
