import Logging
import ServiceKit
import Synchronization
import Testing
import TestSupport

@Suite struct PeriodicTaskTests {
    private struct Broken: Error {}

    /// Records pauses and cancels after a number of them.
    private final class Pauses: Sendable {
        private let kept = Mutex<[Duration]>([])
        private let limit: Int

        init(_ limit: Int) { self.limit = limit }

        var all: [Duration] { kept.withLock { $0 } }

        @Sendable func sleep(_ pause: Duration) throws {
            let isOver = kept.withLock { kept in
                kept.append(pause)
                return kept.count == limit
            }
            if isOver { throw CancellationError() }
        }
    }

    /// Returns the log lines of rounds that succeed or fail as listed.
    private func logLines(of rounds: [Bool]) async -> [CapturingLogger.Line] {
        let log = CapturingLogger()
        let pauses = Pauses(rounds.count)
        let left = Mutex(rounds[...])
        await PeriodicTask(
            every: .seconds(1), failureMessage: "It waits", recoveryMessage: "It goes on", logger: log.logger,
            sleep: pauses.sleep
        ).run { if left.withLock({ $0.popFirst() }) != true { throw Broken() } }
        #expect(pauses.all == rounds.map { _ in .seconds(1) })
        return log.lines
    }

    @Test func `successful rounds are not logged`() async {
        #expect(await logLines(of: [true, true, true]).isEmpty)
    }

    @Test func `a series of failures is logged once, and its end once`() async {
        let lines = await logLines(of: [false, false, true, true, false, true])
        #expect(lines.map(\.message) == ["It waits", "It goes on", "It waits", "It goes on"])
        #expect(lines.map(\.level) == [.warning, .notice, .warning, .notice])
        #expect(lines[0].metadata[LogKey.error] == "\(Broken())")
    }

    @Test func `a round returns its pause, and a failed one uses the default`() async {
        let pauses = Pauses(3)
        let left = Mutex<ArraySlice<Duration?>>([.seconds(60), nil, .seconds(5)])
        await PeriodicTask(
            every: .seconds(1), failureMessage: "", recoveryMessage: "", logger: .silent, sleep: pauses.sleep
        ).runWithOwnPauses {
            guard let pause = left.withLock({ $0.popFirst() }) ?? nil else { throw Broken() }
            return pause
        }
        #expect(pauses.all == [.seconds(60), .seconds(1), .seconds(5)])
    }

    @Test func `a round cancelled by the shutdown is not logged as a failure`() async {
        let log = CapturingLogger()
        let running = Task {
            await PeriodicTask(
                every: .seconds(1), failureMessage: "It waits", recoveryMessage: "", logger: log.logger
            ).run {
                withUnsafeCurrentTask { $0?.cancel() }
                try Task.checkCancellation()
            }
        }
        await running.value
        #expect(log.lines.isEmpty)
    }
}
