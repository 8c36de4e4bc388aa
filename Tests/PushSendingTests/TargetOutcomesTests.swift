import PushProtocol
import TestSupport
import Testing

@testable import PushSending

struct TargetOutcomesTests {
    private func outcome(_ answer: Outcome.Answer = .accepted(id: nil)) -> Outcome {
        let target = Push.Target.sample()
        return Outcome(
            notification: target.notification, device: target.device, answer: answer, at: .sample, registeredAt: nil)
    }

    private func list(_ places: [Int], _ answer: (Int) -> Outcome.Answer = { _ in .accepted(id: nil) })
        -> TargetOutcomes
    {
        var list = TargetOutcomes()
        for (index, place) in places.enumerated() { list.append(outcome(answer(index)), of: place) }
        return list
    }

    @Test func `they are ordered by push, those of a push as they came`() {
        let list = list([2, 0, 1, 0, 2]) { .rejected(reason: "\($0)", suspectToken: false) }
        let ordered = list.ordered
        #expect(ordered.places == [0, 0, 1, 2, 2])
        #expect(ordered.outcomes == [1, 3, 2, 0, 4].map { list.outcomes[$0] })
    }

    @Test(
        arguments: [
            ([0, 0, 0], 3, [0..<3]), ([0, 0, 0, 0], 3, [0..<4]), ([0, 1, 2, 3], 3, [0..<3, 3..<4]),
            ([0, 0, 1, 1, 2], 3, [0..<2, 2..<5]), ([0, 1, 1, 1, 1, 2], 3, [0..<1, 1..<5, 5..<6]), ([], 3, []),
            ([0, 0, 1, 3], 1, [0..<2, 2..<3, 3..<4]),
        ] as [([Int], Int, [Range<Int>])])
    func `a push is never cut in two`(places: [Int], limit: Int, runs: [Range<Int>]) {
        #expect(list(places).runs(ofAtMost: limit) == runs)
    }

    @Test func `what was accepted elsewhere, or not at all, is kept apart`() {
        var elsewhere = outcome()
        elsewhere.elsewhere = .development
        var list = list([0, 1])
        list.append(elsewhere, of: 1)
        list.append(outcome(.expired), of: 2)
        let (accepted, others) = list.divided
        #expect(accepted.places == [0, 1])
        #expect(others.places == [1, 2])
        #expect(others.outcomes.first == elsewhere)
        #expect(accepted.divided.others.count == 0)
    }

    @Test func `what was recalled is not what this attempt added`() {
        var settlements = PushSettlements()
        settlements.recall([outcome(), outcome()], of: 3)
        settlements.settle(outcome(.expired), of: 1)
        #expect(settlements.fresh == 2..<3)
        #expect(settlements.finished.places == [3, 3, 1])
    }

    @Test(
        arguments: [
            ([.tried], .retry(.seconds5, reason: "0")), ([.tried, .exhausted], .retry(.seconds30, reason: "1")),
            ([.exhausted, .held], .postpone(.seconds30, reason: "1")), ([.exhausted], .giveUp(reason: "0")),
            ([.held, .tried, .exhausted], .postpone(.minutes2, reason: "2")),
        ] as [([PushRest.Kind], PushRest.Fate)])
    func `the longest wait is everybody's, and nobody's attempt is counted when one was held`(
        kinds: [PushRest.Kind], fate: PushRest.Fate
    ) {
        let levels: [RetryLevel] = [.seconds5, .seconds30, .minutes2]
        var settlements = PushSettlements()
        for (index, kind) in kinds.enumerated() {
            settlements.leave(.sample(), of: 7, as: kind, levels[index], "\(index)")
        }
        #expect(settlements.rest(of: 7)?.fate == fate)
        #expect(settlements.rest(of: 7)?.targets.count == kinds.count)
        #expect(settlements.rest(of: 6)?.fate == nil)
    }
}
