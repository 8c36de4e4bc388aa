import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(1))) struct TimeoutTests {
    /// Ignores cancellation until the test ends, like the wait for a confirm.
    private func never() -> (wait: @Sendable () async -> Int, end: @Sendable () -> Void) {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        return (
            {
                await Task.detached { for await _ in stream {} }.value
                return 1
            }, { continuation.finish() }
        )
    }

    @Test func `a result is returned`() async {
        #expect(await Timeout.result(of: { 7 }, within: .seconds(60)) == 7)
    }

    @Test func `an operation without a result ends at the deadline`() async {
        let operation = never()
        #expect(await Timeout.result(of: operation.wait, within: .milliseconds(20)) == nil)
        operation.end()
    }

    @Test func `a cancelled wait ends before its deadline`() async {
        let operation = never()
        let waiting = Task { await Timeout.result(of: operation.wait, within: .seconds(3600)) }
        waiting.cancel()
        #expect(await waiting.value == nil)
        operation.end()
    }
}
