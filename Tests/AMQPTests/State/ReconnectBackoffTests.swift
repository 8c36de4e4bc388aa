import Primitives
import Testing

@testable import AMQP

@Suite struct ReconnectBackoffTests {
    private static func backoff(_ random: Double) -> ReconnectBackoff {
        ReconnectBackoff(Backoff(base: .milliseconds(500), cap: .seconds(30)), random: { random })
    }

    @Test func `the ceiling doubles from half a second to thirty seconds`() {
        var backoff = Self.backoff(1)
        let waits = (0..<9).map { _ in backoff.next() }
        #expect(
            waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30].map { Duration.seconds($0) })
    }

    @Test func `the wait is a random part of the ceiling`() {
        var none = Self.backoff(0)
        var half = Self.backoff(0.5)
        #expect(none.next() == .zero)
        #expect(half.next() == .milliseconds(250))
    }

    @Test func `a reset restarts at the base`() {
        var backoff = Self.backoff(1)
        for _ in 0..<5 { _ = backoff.next() }
        backoff.reset()
        #expect(backoff.next() == .milliseconds(500))
    }

    @Test func `a hundred tries do not overflow`() {
        var backoff = Self.backoff(1)
        for _ in 0..<100 { #expect(backoff.next() <= .seconds(30)) }
    }

    @Test func `after a refusal the waits start at seconds and reach the cap`() {
        var low = Self.backoff(0)
        var high = Self.backoff(1)
        #expect((0..<4).map { _ in low.nextAfterRefusal() } == [2, 4, 8, 15].map { Duration.seconds($0) })
        #expect((0..<4).map { _ in high.nextAfterRefusal() } == [4, 8, 16, 30].map { Duration.seconds($0) })
    }
}
