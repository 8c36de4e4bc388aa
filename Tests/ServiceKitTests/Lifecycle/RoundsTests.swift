import Logging
import ServiceKit
import Synchronization
import Testing
import TestSupport

@Suite struct RoundsTests {
    private struct Broken: Error {}

    /// Ends after so many pauses, and keeps them.
    private final class Pauses: Sendable {
        private let kept = Mutex<[Duration]>([])
        private let most: Int

        init(_ most: Int) { self.most = most }

        var all: [Duration] { kept.withLock { $0 } }

        @Sendable func sleep(_ pause: Duration) throws {
            let isOver = kept.withLock { kept in
                kept.append(pause)
                return kept.count == most
            }
            if isOver { throw CancellationError() }
        }
    }

    /// What is told of rounds that go well or fail as they are listed.
    private func told(of rounds: [Bool]) async -> [CapturingLogger.Line] {
        let log = CapturingLogger()
        let pauses = Pauses(rounds.count)
        let left = Mutex(rounds[...])
        await Rounds(
            every: .seconds(1), trouble: "It waits", relief: "It goes on", logger: log.logger, sleep: pauses.sleep
        ).run { if left.withLock({ $0.popFirst() }) != true { throw Broken() } }
        #expect(pauses.all == rounds.map { _ in .seconds(1) })
        return log.lines
    }

    @Test func `rounds that go well are not told`() async {
        #expect(await told(of: [true, true, true]).isEmpty)
    }

    @Test func `trouble is told once, and once that it is over`() async {
        let lines = await told(of: [false, false, true, true, false, true])
        #expect(lines.map(\.message) == ["It waits", "It goes on", "It waits", "It goes on"])
        #expect(lines.map(\.level) == [.warning, .notice, .warning, .notice])
        #expect(lines[0].metadata[LogKey.error] == "\(Broken())")
    }

    @Test func `a round says how long the pause is, and one that fails does not`() async {
        let pauses = Pauses(3)
        let left = Mutex<ArraySlice<Duration?>>([.seconds(60), nil, .seconds(5)])
        await Rounds(
            every: .seconds(1), trouble: "", relief: "", logger: .silent, sleep: pauses.sleep
        ).runPausing {
            guard let pause = left.withLock({ $0.popFirst() }) ?? nil else { throw Broken() }
            return pause
        }
        #expect(pauses.all == [.seconds(60), .seconds(1), .seconds(5)])
    }

    @Test func `a round that is cut off by the end is no trouble`() async {
        let log = CapturingLogger()
        let running = Task {
            await Rounds(every: .seconds(1), trouble: "It waits", relief: "", logger: log.logger).run {
                withUnsafeCurrentTask { $0?.cancel() }
                try Task.checkCancellation()
            }
        }
        await running.value
        #expect(log.lines.isEmpty)
    }
}
