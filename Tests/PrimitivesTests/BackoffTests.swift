import Primitives
import Testing

struct BackoffTests {
    private let backoff = Backoff(base: .milliseconds(200), cap: .seconds(5))

    @Test func `the ceiling doubles with each failure up to the cap`() {
        let ceilings = (1...7).map { backoff.ceiling(afterFailures: $0) }
        #expect(ceilings == [200, 400, 800, 1600, 3200, 5000, 5000].map { .milliseconds($0) })
    }

    @Test(arguments: [-1, 0, 1, 5, 1000, .max])
    func `the wait never exceeds its ceiling, and the ceiling never exceeds the cap`(failures: Int) {
        let ceiling = backoff.ceiling(afterFailures: failures)
        #expect(ceiling <= backoff.cap)
        #expect((0..<100).allSatisfy { _ in (.zero...ceiling).contains(backoff.delay(afterFailures: failures)) })
    }

    @Test func `full jitter starts at zero, equal jitter at half the ceiling`() {
        func waits(_ jitter: Backoff.Jitter) -> [Duration] {
            [0, 0.5, 1].map { backoff.delay(afterFailures: 3, jitter: jitter, random: $0) }
        }
        #expect(waits(.full) == [0, 400, 800].map { .milliseconds($0) })
        #expect(waits(.equal) == [400, 600, 800].map { .milliseconds($0) })
    }
}
