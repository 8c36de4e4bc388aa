import FoundationEssentials
import PushProtocol
import Synchronization
import TestSupport
import Testing

@testable import PushSending

@Suite struct ThirdPartyGateTests {
    private let time = ManualTime()
    private let phone = UUID()
    private let browser = UUID()

    private func gate(_ changes: ChangeLog = ChangeLog()) -> ThirdPartyGate {
        ThirdPartyGate(clock: time.clock) { change in changes.add(change) }
    }

    private final class ChangeLog: Sendable {
        private let log = Mutex<[LaneBreaker.Change]>([])

        var all: [LaneBreaker.Change] { log.withLock { $0 } }
        func add(_ change: LaneBreaker.Change) { log.withLock { $0.append(change) } }
    }

    private func round(_ answers: [(UUID, GatewayAnswer)]) -> PushRound {
        PushRound(
            copies: answers.map { Copy(of: 0, to: .sample(device: $0.0)) }, answers: answers.map(\.1))
    }

    private static let refused = GatewayAnswer.thirdPartyHalted(reason: "InvalidProviderToken")
    private static let accepted = GatewayAnswer.settled(.accepted(id: nil))
    private static let trouble = LaneBreaker.Trouble.misconfigured(reason: "InvalidProviderToken")

    @Test func `a device waits from its first refusal on, and all others go on`() {
        let gate = gate()
        #expect(gate.isQuiet && gate.admit(phone) == .open)
        var refusal = round([(phone, Self.refused), (UUID(), Self.accepted)])
        gate.judge(&refusal, probe: nil)
        #expect(refusal.thirdPartyPause == .seconds(30))
        #expect(!gate.isQuiet && gate.trouble == Self.trouble)
        #expect(gate.admit(phone) == .closed(for: .seconds(30), reason: "InvalidProviderToken"))
        #expect(gate.admit(UUID()) == .open)
    }

    @Test func `after the pause one known device probes, and its acceptance lets all go`() {
        let changes = ChangeLog()
        let gate = gate(changes)
        let others = (0..<5).map { _ in UUID() }
        var refusal = round(([phone] + others).map { ($0, Self.refused) })
        gate.judge(&refusal, probe: nil)
        time.advance(by: .seconds(30))
        #expect(gate.admit(phone) == .probe)
        // The others wait for the probe's answer.
        for device in others { #expect(gate.admit(device) == .closed(for: .zero, reason: "InvalidProviderToken")) }
        var answer = round([(phone, Self.accepted)])
        gate.judge(&answer, probe: phone)
        #expect(gate.isQuiet && gate.trouble == nil)
        for device in others { #expect(gate.admit(device) == .open) }
        #expect(changes.all == [.opened(Self.trouble, pause: .seconds(30)), .closed])
    }

    @Test func `a probe that is refused doubles the pause, and one that says nothing leaves it to the next`() {
        let gate = gate()
        var refusal = round([(phone, Self.refused)])
        gate.judge(&refusal, probe: nil)
        time.advance(by: .seconds(30))
        #expect(gate.admit(phone) == .probe)
        var silence = round([(phone, .unreachable(reason: "away"))])
        gate.judge(&silence, probe: phone)
        #expect(gate.admit(phone) == .probe)
        var again = round([(phone, Self.refused)])
        gate.judge(&again, probe: phone)
        #expect(again.thirdPartyPause == .seconds(60))
        #expect(gate.admit(phone) == .closed(for: .seconds(60), reason: "InvalidProviderToken"))
    }

    @Test func `given two keys, when one is good again, then only the devices of the other wait`() {
        let gate = gate()
        var refusal = round([(phone, Self.refused)])
        gate.judge(&refusal, probe: nil)
        time.advance(by: .seconds(30))
        #expect(gate.admit(phone) == .probe)
        var mixed = round([(browser, Self.refused), (phone, Self.accepted)])
        gate.judge(&mixed, probe: phone)
        #expect(mixed.thirdPartyPause == .seconds(30))
        #expect(gate.admit(phone) == .open)
        #expect(gate.admit(browser) == .closed(for: .seconds(30), reason: "InvalidProviderToken"))
    }
}
