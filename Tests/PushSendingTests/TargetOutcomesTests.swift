import PushProtocol
import Testing
import TestSupport

@testable import PushSending

struct TargetOutcomesTests {
    private func outcome(_ answer: Outcome.Answer = .accepted(id: nil)) -> Outcome {
        let target = Push.Target.sample()
        return Outcome(
            notification: target.notification, device: target.device, answer: answer, at: .sample, registeredAt: nil)
    }

    private func list(_ pushIndices: [Int], _ answer: (Int) -> Outcome.Answer = { _ in .accepted(id: nil) })
        -> TargetOutcomes
    {
        var list = TargetOutcomes()
        for (index, pushIndex) in pushIndices.enumerated() { list.append(outcome(answer(index)), of: pushIndex) }
        return list
    }

    @Test func `outcomes are sorted by push, stably`() {
        let list = list([2, 0, 1, 0, 2]) { .rejected(reason: "\($0)", suspectToken: false) }
        let sortedByPush = list.sortedByPush
        #expect(sortedByPush.pushIndices == [0, 0, 1, 2, 2])
        #expect(sortedByPush.outcomes == [1, 3, 2, 0, 4].map { list.outcomes[$0] })
    }

    @Test(
        arguments: [
            ([0, 0, 0], 3, [0..<3]), ([0, 0, 0, 0], 3, [0..<4]), ([0, 1, 2, 3], 3, [0..<3, 3..<4]),
            ([0, 0, 1, 1, 2], 3, [0..<2, 2..<5]), ([0, 1, 1, 1, 1, 2], 3, [0..<1, 1..<5, 5..<6]), ([], 3, []),
            ([0, 0, 1, 3], 1, [0..<2, 2..<3, 3..<4]),
        ] as [([Int], Int, [Range<Int>])])
    func `a chunk contains whole pushes`(pushIndices: [Int], limit: Int, chunks: [Range<Int>]) {
        #expect(list(pushIndices).chunks(ofAtMost: limit) == chunks)
    }

    @Test func `plain acceptances are separated from other outcomes`() {
        var elsewhere = outcome()
        elsewhere.elsewhere = .development
        var list = list([0, 1])
        list.append(elsewhere, of: 1)
        list.append(outcome(.expired), of: 2)
        let (accepted, others) = list.partitioned
        #expect(accepted.pushIndices == [0, 1])
        #expect(others.pushIndices == [1, 2])
        #expect(others.outcomes.first == elsewhere)
        #expect(accepted.partitioned.others.count == 0)
    }

    @Test func `recalled outcomes are not new`() {
        var pushResults = PushResults()
        pushResults.recall([outcome(), outcome()], of: 3)
        pushResults.settle(outcome(.expired), of: 1)
        #expect(pushResults.newIndices == 2..<3)
        #expect(pushResults.finished.pushIndices == [3, 3, 1])
    }

    @Test(
        arguments: [
            ([.tried], .retry(.seconds5, reason: "0")), ([.tried, .exhausted], .retry(.seconds30, reason: "1")),
            ([.exhausted, .held], .postpone(.seconds30, reason: "1")), ([.exhausted], .giveUp(reason: "0")),
            ([.held, .tried, .exhausted], .postpone(.minutes2, reason: "2")),
        ] as [([RemainingTargets.TargetState], RemainingTargets.NextStep)])
    func `the longest delay holds for all targets, and a held target prevents counting the attempt`(
        states: [RemainingTargets.TargetState], nextStep: RemainingTargets.NextStep
    ) {
        let levels: [RetryLevel] = [.seconds5, .seconds30, .minutes2]
        var pushResults = PushResults()
        for (index, state) in states.enumerated() {
            pushResults.addRemaining(.sample(), of: 7, as: state, levels[index], "\(index)")
        }
        #expect(pushResults.remaining(of: 7)?.nextStep == nextStep)
        #expect(pushResults.remaining(of: 7)?.targets.count == states.count)
        #expect(pushResults.remaining(of: 6)?.nextStep == nil)
    }
}
