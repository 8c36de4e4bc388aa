import Providers
import PushProtocol
import PushSending
import Testing

@testable import WebPushSender

@Suite struct OriginStateTests {
    private let accepted = SendResult.settled(.accepted(id: nil))

    @Test func `a refused key halts the push service until a probe is answered, for longer each time`() {
        var state = OriginState()
        #expect(state.admit(now: .zero) == .allowed)
        _ = state.record([accepted, .halted(reason: "HTTP 403")], isProbe: false, now: .zero)
        #expect(state.isOpen && state.admit(now: .seconds(29)) == .blocked(for: .seconds(1), reason: "HTTP 403"))
        #expect(state.admit(now: .seconds(30)) == .probe)
        #expect(state.admit(now: .seconds(30)) == .blocked(for: .seconds(5), reason: "HTTP 403"))
        _ = state.record([.halted(reason: "HTTP 403")], isProbe: true, now: .seconds(30))
        #expect(state.pause(now: .seconds(30)) == .seconds(60))
        #expect(state.admit(now: .seconds(90)) == .probe)
        #expect(state.record([accepted], isProbe: true, now: .seconds(90)) == .closed)
        #expect(state.admit(now: .seconds(90)) == .allowed && !state.isOpen)
    }

    @Test func `the longest pause that a push service asks for applies`() {
        var state = OriginState()
        let results = [60, 300, 10].map { SendResult.backOff(floor: .seconds($0), reason: "HTTP 429") }
        _ = state.record(results + [accepted], isProbe: false, now: .seconds(5))
        #expect(state.pause(now: .seconds(5)) == .seconds(300) && !state.isOpen)
        #expect(state.admit(now: .seconds(304)) == .blocked(for: .seconds(1), reason: "HTTP 429"))
        #expect(state.admit(now: .seconds(305)) == .allowed)
    }

    @Test func `a changed key ends a halt`() {
        var state = OriginState()
        _ = state.record([.halted(reason: "HTTP 401")], isProbe: false, now: .zero)
        state.endPause(now: .seconds(1))
        #expect(state.admit(now: .seconds(1)) == .probe)
    }

    @Test(arguments: [
        (SendResult.halted(reason: "HTTP 403"), SendResult.throttled(floor: .seconds(60), reason: "HTTP 403")),
        (.unreachable(reason: "connect-failed"), .throttled(floor: .seconds(60), reason: "connect-failed")),
        (.backOff(floor: .seconds(90), reason: "HTTP 503"), .throttled(floor: .seconds(90), reason: "HTTP 503")),
        (
            .unreachable(reason: "address-refused"),
            .settled(.rejected(reason: "address-refused", suspectToken: true))
        ),
        (.withdrawn, .withdrawn),
    ])
    func `no answer of a push service pauses the app's route`(result: SendResult, expected: SendResult) {
        #expect(result.forRoute(pause: .seconds(60)) == expected)
    }
}
