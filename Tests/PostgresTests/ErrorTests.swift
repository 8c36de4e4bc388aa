import Primitives
import Testing

@testable import Postgres

@Suite struct ErrorTests {
    @Test(arguments: ["08006", "53100", "53300", "57P01", "57P02", "57P03", "25006", "58030"])
    func `an unavailable server is an outage`(state: String) {
        #expect(PostgresError(.sqlState(state), operation: "", detail: "").isOutage)
    }

    @Test(arguments: ["23505", "22P02", "42601", "40001", "40P01", "P0001", "57000", "57014", "55P03"])
    func `an invalid statement is not an outage`(state: String) {
        #expect(!PostgresError(.sqlState(state), operation: "", detail: "").isOutage)
    }

    @Test(arguments: [
        PostgresError.Code.connectionFailed, .connectionLost, .checkoutTimedOut, .poolClosed, .commitUnknown,
    ])
    func `an unavailable connection is an outage`(code: PostgresError.Code) {
        #expect(PostgresError(code, operation: "", detail: "").isOutage)
    }

    @Test(arguments: [PostgresError.Code.deadlineExceeded, .sqlState("57014"), .sqlState("55P03")])
    func `a statement time-out is not an outage`(code: PostgresError.Code) {
        let error = PostgresError(code, operation: "", detail: "")
        #expect(error.isTimeout && !error.isOutage)
    }

    @Test func `only serialization failures and deadlocks are retried repeatedly`() {
        var retries = TransactionRetries()
        let deadlock = PostgresError(.sqlState("40P01"), operation: "", detail: "")
        #expect((1...6).map { _ in retries.next(after: deadlock) } == [1, 2, 3, 4, 5, nil])
        for code in [PostgresError.Code.sqlState("23505"), .commitUnknown, .deadlineExceeded, .cancelled] {
            var retries = TransactionRetries()
            #expect(retries.next(after: PostgresError(code, operation: "", detail: "")) == nil)
        }
        #expect(retries.next(after: nil) == nil)
    }

    @Test(arguments: [PostgresError.Code.connectionLost, .sqlState("57P01")])
    func `a lost connection is retried once`(code: PostgresError.Code) {
        var retries = TransactionRetries()
        let lost = PostgresError(code, operation: "", detail: "")
        #expect(retries.next(after: lost) == 1)
        #expect(retries.next(after: lost) == nil)
    }

    @Test func `backoff doubles, is capped, and has jitter in its second half`() {
        func delay(_ failures: Int, _ random: Double) -> Duration {
            Backoff.reconnecting.delay(afterFailures: failures, jitter: .equal, random: random)
        }
        #expect(delay(1, 0) == .milliseconds(50))
        #expect(delay(3, 1) == .milliseconds(400))
        #expect(delay(400, 1) == .seconds(5))
    }
}
