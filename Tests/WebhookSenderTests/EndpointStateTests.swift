import Foundation
import Messaging
import PushProtocol
import TestSupport
import Testing

@testable import WebhookSender

/// When a webhook gets requests, with a clock of the test.
@Suite struct EndpointStateTests {
    private static let start = Timestamp(milliseconds: 1_800_000_000_000)
    private static let interval = Duration.seconds(600)

    private func state() -> EndpointState { EndpointState(probeInterval: Self.interval) }

    private func at(_ seconds: Int64) -> Timestamp { Self.start + .seconds(seconds) }

    @Test func `an unavailable endpoint is paused, each time longer, until a delivery`() {
        var state = state()
        var now = Self.start
        for pause in [5, 30, 120, 900, 900] {
            #expect(state.permission(at: now) == .send)
            state.record(.unavailable("status 503", retryAfter: nil), firstSeen: Self.start, isLast: false, at: now)
            #expect(state.permission(at: now) == .wait(.seconds(pause)))
            now = now + .seconds(pause)
        }
        #expect(state.permission(at: now) == .send)
        state.record(.delivered, firstSeen: Self.start, isLast: false, at: now)
        state.record(.unavailable("status 503", retryAfter: nil), firstSeen: now, isLast: false, at: now)
        #expect(state.permission(at: now) == .wait(.seconds(5)))
        #expect(state.disabledBecause == nil)
    }

    @Test func `requests that fail together count once`() {
        var state = state()
        for _ in 0..<8 {
            state.record(.unavailable("timed out", retryAfter: nil), firstSeen: Self.start, isLast: false, at: at(1))
        }
        #expect(state.permission(at: at(1)) == .wait(.seconds(5)))
    }

    @Test func `a receiver may ask for a longer pause`() {
        var state = state()
        state.record(
            .unavailable("status 429", retryAfter: .seconds(60)), firstSeen: Self.start, isLast: false, at: at(0))
        #expect(state.permission(at: at(0)) == .wait(.seconds(60)))
    }

    @Test func `a rejected report pauses nothing`() {
        var state = state()
        state.record(.rejected("status 400"), firstSeen: Self.start, isLast: false, at: at(0))
        #expect(state.permission(at: at(0)) == .send)
    }

    @Test(arguments: [RequestResult.rejected("status 500"), .unavailable("timed out", retryAfter: nil)])
    func `a report that fails to the end disables the endpoint, except one probe in each interval`(
        result: RequestResult
    ) {
        var state = state()
        state.record(result, firstSeen: Self.start, isLast: true, at: at(1000))
        #expect(state.disabledBecause?.contains("no report was delivered since 2027-") == true)
        // The first probe is the next report.
        #expect(state.permission(at: at(1000)) == .send)
        guard case .refuse = state.permission(at: at(1001)) else {
            Issue.record("a second probe in the interval")
            return
        }
        state.record(result, firstSeen: at(1000), isLast: false, at: at(1001))
        guard case .refuse = state.permission(at: at(1599)) else {
            Issue.record("a second probe in the interval")
            return
        }
        #expect(state.permission(at: at(1600)) == .send)
        state.record(.delivered, firstSeen: at(1600), isLast: false, at: at(1601))
        #expect(state.disabledBecause == nil)
        #expect(state.permission(at: at(1601)) == .send)
    }

    @Test func `a report that always fails disables no endpoint that took others`() {
        var state = state()
        state.record(.delivered, firstSeen: at(500), isLast: false, at: at(500))
        state.record(.rejected("status 400"), firstSeen: Self.start, isLast: true, at: at(1000))
        #expect(state.disabledBecause == nil)
    }

    @Test func `410 disables at once`() {
        var state = state()
        state.record(.delivered, firstSeen: at(0), isLast: false, at: at(0))
        state.record(.gone, firstSeen: at(0), isLast: false, at: at(1))
        #expect(state.disabledBecause == "the receiver answered 410")
        #expect(state.permission(at: at(1)) == .send)
        #expect(state.permission(at: at(1)) == .refuse("the receiver answered 410"))
    }

    @Test func `an address that is not allowed changes nothing`() {
        var state = state()
        state.record(.refused("x"), firstSeen: Self.start, isLast: true, at: at(1000))
        #expect(state.disabledBecause == nil && state.permission(at: at(1000)) == .send)
    }
}

@Suite struct RequestResultTests {
    @Test func `2xx is a delivery, 410 the end, and all others are sent again`() {
        for status in [200, 201, 202, 204, 299] { #expect(RequestResult(status: status) == .delivered) }
        #expect(RequestResult(status: 410) == .gone)
        for status in [429, 502, 503, 504] {
            #expect(RequestResult(status: status) == .unavailable("status \(status)", retryAfter: nil))
        }
        for status in [100, 301, 302, 307, 308, 400, 401, 404, 408, 500, 501] {
            guard case .rejected = RequestResult(status: status) else {
                Issue.record("\(status)")
                continue
            }
        }
    }

    @Test func `Retry-After in seconds counts, up to an hour`() {
        func delay(_ value: String) -> Duration? {
            guard case .unavailable(_, let delay) = RequestResult(status: 503, retryAfter: value) else { return nil }
            return delay
        }
        #expect(delay("120") == .seconds(120))
        #expect(delay("999999999") == .seconds(3600))
        #expect(delay("-5") == .zero)
        #expect(delay("Wed, 21 Oct 2026 07:28:00 GMT") == nil)
    }

    @Test func `the delays of a report are the retry levels`() {
        let delays = [5, 30, 120, 900, 3600, 21600, 21600, 21600].map { Duration.seconds($0) }
        #expect((1...8).map { RetryLevel(afterAttempt: $0).delay } == delays)
    }

    @Test func `a result decides about its report`() {
        func code(_ disposition: Disposition) -> String { "\(disposition.label) \(disposition.code ?? "")" }
        func after(_ result: RequestResult, isLast: Bool = false) -> Disposition {
            ReportHandler.disposition(after: result, attempt: 2, isLast: isLast)
        }
        #expect(after(.delivered, isLast: true) == .done)
        #expect(code(after(.gone)) == "dead-letter webhook-gone")
        #expect(code(after(.refused("x"))) == "dead-letter webhook-refused")
        #expect(code(after(.rejected("x"))) == "retry webhook-rejected")
        #expect(code(after(.rejected("x"), isLast: true)) == "dead-letter webhook-failed")
        #expect(code(after(.unavailable("x", retryAfter: nil), isLast: true)) == "dead-letter webhook-failed")
        guard case .retry(let delay, _) = after(.unavailable("x", retryAfter: .seconds(300))) else {
            Issue.record("no retry")
            return
        }
        #expect(delay == .seconds(300))
    }
}

extension Disposition {
    /// The code of the reason.
    var code: String? {
        switch self {
        case .done: nil
        case .retry(_, let reason), .postpone(_, let reason), .deadLetter(let reason), .discard(let reason): reason.code
        }
    }
}
