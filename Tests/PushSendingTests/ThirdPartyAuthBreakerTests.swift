import FoundationEssentials
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import PushSending

@Suite struct ThirdPartyAuthBreakerTests {
    private let time = ManualTime()
    private let phone = UUID()
    private let browser = UUID()

    private func breaker(_ changes: TransitionLog = TransitionLog()) -> ThirdPartyAuthBreaker {
        ThirdPartyAuthBreaker(clock: time.clock) { change in changes.add(change) }
    }

    private final class TransitionLog: Sendable {
        private let log = Mutex<[CircuitBreaker.Transition]>([])

        var all: [CircuitBreaker.Transition] { log.withLock { $0 } }
        func add(_ change: CircuitBreaker.Transition) { log.withLock { $0.append(change) } }
    }

    private func attempt(_ results: [(UUID, SendResult)]) -> SendAttempt {
        SendAttempt(
            requests: results.map { TargetRequest(of: 0, to: .sample(device: $0.0)) }, results: results.map(\.1))
    }

    private static let refused = SendResult.thirdPartyAuthRejected(reason: "InvalidProviderToken")
    private static let accepted = SendResult.settled(.accepted(id: nil))
    private static let openCause = CircuitBreaker.OpenCause.misconfigured(reason: "InvalidProviderToken")

    @Test func `a device is blocked from its first rejection, and others are not`() {
        let breaker = breaker()
        #expect(breaker.isEmpty && breaker.admit(phone) == .allowed)
        var rejected = attempt([(phone, Self.refused), (UUID(), Self.accepted)])
        breaker.update(&rejected, probe: nil)
        #expect(rejected.thirdPartyPause == .seconds(30))
        #expect(!breaker.isEmpty && breaker.openCause == Self.openCause)
        #expect(breaker.admit(phone) == .blocked(for: .seconds(30), reason: "InvalidProviderToken"))
        #expect(breaker.admit(UUID()) == .allowed)
    }

    @Test func `given an accepted probe after the pause, then all devices are allowed`() {
        let changes = TransitionLog()
        let breaker = breaker(changes)
        let others = (0..<5).map { _ in UUID() }
        var rejected = attempt(([phone] + others).map { ($0, Self.refused) })
        breaker.update(&rejected, probe: nil)
        time.advance(by: .seconds(30))
        #expect(breaker.admit(phone) == .probe)
        // The others wait for the probe's result.
        for device in others { #expect(breaker.admit(device) == .blocked(for: .zero, reason: "InvalidProviderToken")) }
        var answer = attempt([(phone, Self.accepted)])
        breaker.update(&answer, probe: phone)
        #expect(breaker.isEmpty && breaker.openCause == nil)
        for device in others { #expect(breaker.admit(device) == .allowed) }
        #expect(changes.all == [.opened(Self.openCause, pause: .seconds(30)), .closed])
    }

    @Test func `a rejected probe doubles the pause; after an inconclusive one another device probes`() {
        let breaker = breaker()
        var rejected = attempt([(phone, Self.refused)])
        breaker.update(&rejected, probe: nil)
        time.advance(by: .seconds(30))
        #expect(breaker.admit(phone) == .probe)
        var silence = attempt([(phone, .unreachable(reason: "away"))])
        breaker.update(&silence, probe: phone)
        #expect(breaker.admit(phone) == .probe)
        var again = attempt([(phone, Self.refused)])
        breaker.update(&again, probe: phone)
        #expect(again.thirdPartyPause == .seconds(60))
        #expect(breaker.admit(phone) == .blocked(for: .seconds(60), reason: "InvalidProviderToken"))
    }

    @Test func `given two keys, when one is valid again, then only devices of the other are blocked`() {
        let breaker = breaker()
        var rejected = attempt([(phone, Self.refused)])
        breaker.update(&rejected, probe: nil)
        time.advance(by: .seconds(30))
        #expect(breaker.admit(phone) == .probe)
        var mixed = attempt([(browser, Self.refused), (phone, Self.accepted)])
        breaker.update(&mixed, probe: phone)
        #expect(mixed.thirdPartyPause == .seconds(30))
        #expect(breaker.admit(phone) == .allowed)
        #expect(breaker.admit(browser) == .blocked(for: .seconds(30), reason: "InvalidProviderToken"))
    }
}
