import FoundationEssentials
@testable import PushSending
import PushProtocol
import TestSupport
import Testing

struct SettledTargetsTests {
    private let time = ManualTime()

    private func outcome(_ target: Push.Target) -> Outcome {
        Outcome(
            notification: target.notification, device: target.device, answer: .accepted(id: nil), at: .sample,
            registeredAt: target.registeredAt)
    }

    private func push(_ number: Int, targets: Int = 3) -> Push {
        var push = Push.sample(targets: (0..<targets).map { .sample(token: String(0x1000 * number + $0, radix: 16)) })
        push.trace = push.trace.next(id: DerivedID.caused(by: push.trace.id, "push", index: number))
        return push
    }

    @Test func `what was settled is answered again, and the rest is left`() {
        let settled = SettledTargets(clock: time.clock), push = push(1)
        #expect(settled.outcomes(of: push) == nil)
        settled.remember([outcome(push.targets[1])], of: push.trace.id)
        settled.remember([outcome(push.targets[2])], of: push.trace.id)
        let known = settled.outcomes(of: push)
        #expect(push.targets.indices.map { known?.isMissing($0) } == [true, false, false])
        #expect(known?.outcomes == [outcome(push.targets[1]), outcome(push.targets[2])])
        #expect(settled.outcomes(of: self.push(2)) == nil)
    }

    @Test func `it is forgotten after its lifetime`() {
        let settled = SettledTargets(lifetime: .seconds(60), clock: time.clock), push = push(1)
        settled.remember([outcome(push.targets[0])], of: push.trace.id)
        time.advance(by: .seconds(61))
        #expect(settled.outcomes(of: push) == nil)
    }

    @Test func `the oldest pushes make room`() {
        let settled = SettledTargets(capacity: 6, clock: time.clock)
        let pushes = (1...3).map { push($0) }
        for push in pushes { settled.remember(push.targets.map(outcome)[...], of: push.trace.id) }
        #expect(pushes.map { settled.outcomes(of: $0)?.outcomes.count } == [nil, 3, 3])
    }
}
